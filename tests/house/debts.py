"""Where the house breaks its own rules today. A list may only get shorter: what no longer holds must be struck out."""

CIRCLES: list[list[str]] = []
"""Modules that import one another."""

UPWARD: dict[str, set[tuple[str, str]]] = {}
"""Arrows from a lower floor to a higher one."""

LONG: set[str] = {
    "native/program_generator.py",  # one generator: every construct of the language, drawn beside the others
}
"""Modules of more lines than a reader wants, and why."""

TWICE: set[str] = set()
"""Names of several classes."""

DEAD: set[tuple[str, str]] = set()
"""Files that prose names, and that are not there."""

WORDS: dict[str, dict[str, int]] = {
    "benchmarks": {"questions": 3, "long": 1, "persons": 3, "riddles": 10},
    "docs": {"persons": 93, "riddles": 342},
    "examples": {"questions": 2, "long": 1, "persons": 18, "riddles": 23},
    "gapless": {"questions": 2, "long": 1, "persons": 4, "riddles": 14},
    "impl": {"questions": 1, "riddles": 3},
    "native": {"riddles": 2},
    "properties": {"questions": 3, "long": 2, "persons": 12, "riddles": 20},
    "spec": {"questions": 3, "long": 2, "persons": 3, "riddles": 10},
    "tests": {"questions": 4, "long": 2, "persons": 26, "riddles": 90, "participles": 1},
    "traces": {"questions": 11, "long": 7, "persons": 8, "riddles": 25, "participles": 3},
    "traces/report": {},
}
"""Places that break a rule of `words.py`, by area: how many, at most."""
