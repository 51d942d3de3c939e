"""The formats of runs and judgments that are known, a file each (or a family): a file put here is found, and no list names it."""
