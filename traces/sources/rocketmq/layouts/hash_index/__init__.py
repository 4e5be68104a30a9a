"""The hash index: items that lead from keys to their records, in index/."""
