"""The pooling strategies, one file per family. Every class in this folder is registered."""
