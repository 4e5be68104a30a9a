"""The table of keys in RocksDB: rows that lead from keys to their records."""
