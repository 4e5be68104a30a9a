"""Ordered parallel dispatch: records are numbered, entries written out of order, and read in order."""
