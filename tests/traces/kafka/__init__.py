"""Tests of the source of Kafka's data directories."""
