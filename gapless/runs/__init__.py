"""Runs of our own store, recorded: with threads, or step by step."""
