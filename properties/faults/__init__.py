"""Planted faults: the guard audit, mutants of specs and of the implementation, false friends."""
