"""A store that is followed while a broker writes to it."""
