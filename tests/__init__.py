"""Is the checker right: tests of our own tools, sorted by purpose."""
