"""Consume queues, in files, in batches or in RocksDB: read, joined and judged."""
