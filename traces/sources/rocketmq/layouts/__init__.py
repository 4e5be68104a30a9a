"""Kinds of files next to a store's log, each in a folder of its own: `registry.py` lists them."""
