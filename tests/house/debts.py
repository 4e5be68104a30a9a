"""Where the house breaks its own rules today. A list may only get shorter: what no longer holds must be struck out."""

CIRCLES: list[list[str]] = []
"""Modules that import one another."""

UPWARD: dict[str, set[tuple[str, str]]] = {}
"""Arrows from a lower floor to a higher one."""

LONG = {
    "traces/replay/kernels.py",
}
"""Modules of more lines than a reader wants."""

TWICE = {
    "Answer",
    "Step",
    "Store",
}
"""Names of several classes."""

DEAD = {
    ("properties/proof/induction.py", "examples.py"),
}
"""Files that prose names, and that are not there."""
