"""Run × Qrels → Scores: hits, measures, evaluate, explain, bounds, curves, sanity checks."""
