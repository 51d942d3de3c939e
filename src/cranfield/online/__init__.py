"""Online evaluation: interleave, assign, log, credit, decide."""
