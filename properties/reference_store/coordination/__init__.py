"""The coordinator and its clients beside their specs: step by step, and as they run."""
