"""Compares the replicas of one store: a master and its slaves."""
