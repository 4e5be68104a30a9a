"""A client's permits next to their spec: compared step by step, and as a Hypothesis machine."""
