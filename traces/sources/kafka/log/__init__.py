"""A partition's log: segments, batches and records in columns."""
