"""Recorded traces held against a spec, in columns, and what that comes to."""
