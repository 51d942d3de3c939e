"""Which documents to judge next, and how unjudged documents affect scores."""
