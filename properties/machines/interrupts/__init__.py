"""A store whose user presses Ctrl-C, at every point of every verb."""
