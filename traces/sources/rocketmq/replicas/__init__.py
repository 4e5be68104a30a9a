"""Replicas of one store, held against one another: a master and its slaves."""
