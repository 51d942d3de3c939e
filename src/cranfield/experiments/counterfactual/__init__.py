"""Counterfactual estimates: the clicks that a ranker would get if it were shown, from the log of other rankers.

`logged_pages` holds the log and what is known of its randomisation, `new_ranker` the ranker whose clicks
are estimated, `estimator` the base class; each family of estimators has a file. `estimate` puts them together.
"""
