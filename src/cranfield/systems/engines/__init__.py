"""The systems under test, a file for each kind; a class in a file of this folder is all that a new one takes."""
