"""A package that adds one throw-away member of every kind: tests/test_extensions.py installs it and tries each."""
