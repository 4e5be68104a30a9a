"""Transactions of the implementation beside their specs, step by step, through losses of power."""
