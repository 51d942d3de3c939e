"""`python -m cranfield` is the command line."""

from cranfield.cli import program

if __name__ == "__main__":
    program()
