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
    "benchmarks": {"questions": 34, "long": 8, "persons": 8, "riddles": 58, "participles": 4},
    "docs": {"persons": 93, "riddles": 342},
    "examples": {"questions": 6, "long": 1, "persons": 21, "riddles": 37},
    "gapless": {"questions": 2, "long": 1, "persons": 4, "riddles": 14},
    "impl": {"questions": 1, "riddles": 3},
    "manual": {"questions": 4, "persons": 2, "riddles": 13, "participles": 1},
    "native": {"riddles": 2},
    "properties": {"questions": 3, "long": 2, "persons": 12, "riddles": 20},
    "spec": {"questions": 3, "long": 2, "persons": 3, "riddles": 10},
    "tests": {"questions": 294, "long": 69, "persons": 347, "riddles": 2056, "participles": 25},
    "traces": {"questions": 780, "long": 81, "persons": 247, "riddles": 1887, "participles": 35},
    "traces/report": {},
}
"""Places that break a rule of `words.py`, by area: how many, at most."""
