"""How fast, and against whom: `python -m benchmarks` (or `make bench`) measures cranfield and its peers in the same run.

A speed here is always a ratio to a peer measured minutes ago on the same machine and the same files, and it
only counts if both computed the same means.
"""
