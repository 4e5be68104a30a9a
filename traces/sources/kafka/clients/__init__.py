"""Answers to clients, as they recorded them, compared with the logs."""
