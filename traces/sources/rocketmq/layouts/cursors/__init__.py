"""Cursors of consumer groups and of delay levels, in config/."""
