"""Processes of a check: their start and end, time limits, and trial runs."""
