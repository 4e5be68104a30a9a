"""The coordinator and its clients, compared with their specs: step by step, and as they run."""
