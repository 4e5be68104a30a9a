"""Refinements between specs: a module each, with an abstraction function and an abstract step for each step."""
