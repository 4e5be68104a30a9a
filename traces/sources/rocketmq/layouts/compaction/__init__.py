"""Compacted topics: of each key the newest message, in a log of its own."""
