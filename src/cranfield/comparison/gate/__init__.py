"""May a candidate replace the baseline? The gate of continuous integration, its verdicts and the causes of a loss."""
