"""The questions that pages ask: one class per question, one file per family."""
