"""The inputs of commands and pages: run files, judgments, logs, topics and texts."""
