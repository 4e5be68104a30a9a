"""Deviations of named brokers from the design, each in a module named after its spec."""
