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
    "impl": {"questions": 220, "long": 19, "persons": 158, "riddles": 257, "participles": 13},
    "manual": {"questions": 4, "persons": 2, "riddles": 13, "participles": 1},
    "native": {"questions": 2, "long": 3, "persons": 2, "riddles": 22, "participles": 5},
    "properties": {"questions": 352, "long": 42, "persons": 234, "riddles": 658, "participles": 29},
    "spec": {"questions": 101, "long": 35, "persons": 295, "riddles": 428, "participles": 3},
    "tests": {"questions": 294, "long": 69, "persons": 347, "riddles": 2056, "participles": 25},
    "traces": {"questions": 780, "long": 81, "persons": 247, "riddles": 1887, "participles": 35},
    "traces/report": {},
}
"""Places that break a rule of `words.py`, by area: how many, at most."""
