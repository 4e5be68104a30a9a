"""Liveness on finite graphs: whether what a claim waits for comes, and the run in which it does not."""
