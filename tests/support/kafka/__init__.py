"""Kafka's files, made and recorded, for tests."""
