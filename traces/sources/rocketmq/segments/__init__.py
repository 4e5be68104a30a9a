"""Reads and judges one part of the log in one worker."""
