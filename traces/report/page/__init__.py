"""The report as one HTML page: its first screen, its pictures, and the passages that it cites."""
