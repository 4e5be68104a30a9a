"""Hypothesis machines: the implementation and the model take the same steps, through crashes and interleavings."""
