"""The judgement of recorded traces by their spec, in columns, and its results."""
