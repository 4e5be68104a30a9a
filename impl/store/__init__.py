"""The store: recovery and every step in `core.py`, and the public `Store` with its threads."""
