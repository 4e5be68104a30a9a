"""Transactions of the implementation and their specs, step by step, through losses of power."""
