"""What stands where raters differ: one label for each item, or one strength where items were compared in pairs.

One class in one file is one method, found by its name. `method` says what a method of labels is and what it answers,
`preference` the same of methods for pairs.
"""
