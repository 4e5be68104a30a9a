"""The table of situations in which a store accuses its broker, or may not."""
