"""Checks in pytest: recordings and stories as tests, and their options."""
