"""Runs of a store under a workload, with threads or step by step."""
