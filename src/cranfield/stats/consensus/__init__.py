"""Label aggregation: one label for each item, or one strength for each item if items were compared in pairs.

One class is one method. `method` holds the methods for labels, `preference` those for pairs. A further module in this
folder is found by itself.
"""
