"""Segments of one log, joined: what only the whole of it shows."""
