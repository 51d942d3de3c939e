"""The layouts that collections come in, a file each (or a family): a file put here is found, and no list names it."""
