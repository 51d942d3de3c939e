"""The layouts of collections, one file per layout or family. Every class in this folder is registered."""
