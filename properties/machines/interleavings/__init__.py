"""A small store, and the orders in which those who work on it may take their steps."""
