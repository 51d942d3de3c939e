"""What is measured: one short script each, written as a user of that library would write it.

Each is run by its path in a process of its own, so that a peer's script needs nothing but the peer.
"""
