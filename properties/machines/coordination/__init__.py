"""The coordinator and its clients beside their specs: step by step, through crashes, and in every order of small cases."""
