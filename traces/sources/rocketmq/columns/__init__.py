"""Columns of numbers, and the bytes that they are read from: lookup, packing, and blocks on disk."""
