"""A store whose power fails: opened, used, lost and found again, and checked against what its client knows."""
