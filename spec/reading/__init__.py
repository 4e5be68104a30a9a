"""Reads the text of a spec before any of it is run: its words, and the files that users bring."""
