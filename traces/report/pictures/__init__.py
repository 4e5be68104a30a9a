"""Pictures of findings: each kind is a module with its value and its shapes, a template and a line of `kinds.py`."""
