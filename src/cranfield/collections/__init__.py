"""Test collections: check them, describe them, and the one that comes with the package (`bundled/`)."""
