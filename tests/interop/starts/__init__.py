"""Starts of real brokers on stores that are damaged in one place."""
