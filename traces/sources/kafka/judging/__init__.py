"""Reads and judges one part of a segment in one worker."""
