"""How fast is the checker, and on what: `python -m benchmarks`."""
