"""Label aggregation: one label for each item, or one strength for each item if items were compared in pairs.

One class is one method. `method` defines what a method of labels is, `methods` holds the built-in ones; `preference` holds
the methods for pairs. A further module in this folder is found by itself.
"""
