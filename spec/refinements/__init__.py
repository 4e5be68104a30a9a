"""Which spec refines which: one module each, with an abstraction function and the abstract step that each step is."""
