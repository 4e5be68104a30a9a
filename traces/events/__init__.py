"""The event schema: how a step is written down, in columns, NDJSON and Parquet."""
