"""A coordinator next to its spec: as a Hypothesis machine, and by programs drawn at random."""
