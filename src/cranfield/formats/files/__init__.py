"""The formats of runs and judgments, one file per format or family. Every class in this folder is registered."""
