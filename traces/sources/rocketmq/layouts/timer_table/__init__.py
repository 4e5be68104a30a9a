"""The table of timers in RocksDB: rows of messages that wait."""
