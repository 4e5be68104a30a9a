"""Tiered storage: copies of queues elsewhere, with metadata and an index of their own."""
