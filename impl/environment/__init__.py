"""What a store runs in: a disk, a clock and a scheduler, real or simulated."""
