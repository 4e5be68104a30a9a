"""Where the house breaks its own rules today. A list may only get shorter: what no longer holds must be struck out."""

CIRCLES: list[list[str]] = []
"""Modules that import one another."""

UPWARD: dict[str, set[tuple[str, str]]] = {}
"""Arrows from a lower floor to a higher one."""

LONG: set[str] = {
    "native/generated.py",  # one generator: every construct of the language, drawn beside the others
    "spec/reading/vocabulary.py",  # one table of what a spec may say, and the remedy for all else
}
"""Modules of more lines than a reader wants, and why."""

TWICE: set[str] = set()
"""Names of several classes."""

DEAD: set[tuple[str, str]] = set()
"""Files that prose names, and that are not there."""
