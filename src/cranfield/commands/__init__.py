"""The function behind each command: it opens the inputs and calls the library. Command line and workbench share them."""
