"""The table of halves in RocksDB: a row for each half that is not decided."""
