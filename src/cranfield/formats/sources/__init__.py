"""The layouts that collections come in, each in a module of its own; `import_collection` makes a folder of any."""
