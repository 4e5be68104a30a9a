"""Model checkers of others, on the same models."""
