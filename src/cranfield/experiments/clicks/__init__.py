"""Click models, and what follows from them: judgments from clicks, and the examination of ranks.

A model is fitted to result pages (`result_pages`) or to counts of their clicks. `model` defines what a click model is; each
family of models has a file.
"""
