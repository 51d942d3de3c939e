"""Models that label: asked, written down before and after, and never taken for people."""
