"""The upkeep of a store that is open: flushes, expiry, backups and statistics."""
