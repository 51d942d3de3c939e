"""Existing scripts change one import or one command: trec_eval and pytrec_eval over the same core."""
