"""Faults planted in the implementation, part by part."""
