"""The environment of a store: a disk and a clock."""
