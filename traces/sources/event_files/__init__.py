"""Files of recorded events, NDJSON or Parquet, from any broker."""
