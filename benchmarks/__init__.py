"""Benchmarks of the checker: `python -m benchmarks`."""
