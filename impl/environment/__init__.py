"""What a store runs in: a disk and a clock."""
