"""A transaction coordinator with a limit on active transactions, and its client."""
