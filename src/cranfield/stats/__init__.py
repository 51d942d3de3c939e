"""Statistics that know nothing of search: sequences, scores and items in, numbers out. One module per question."""
