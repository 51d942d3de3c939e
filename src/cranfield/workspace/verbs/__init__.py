"""What the workbench can ask for: a class a file."""
