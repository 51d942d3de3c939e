"""The pooling strategies, a file for each family; a class in a file of this folder is all that a new one takes."""
