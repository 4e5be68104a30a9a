"""Specs: each step of each system, written once, as a plain function on a frozen state."""
