"""The commit log: its records, the scan, and the positions at which it may end."""
