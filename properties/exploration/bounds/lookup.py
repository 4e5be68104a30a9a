"""The bound for a log of halves without a cache."""

from dataclasses import replace

from gapless.properties.exploration.bounds import Bound

BOUND = Bound(
    says="halves up to 2 of a log that begins at 0 or 1, of two messages, two questions or restarts",
    within=lambda s: s.end <= 3 and s.lives + s.answers <= 3,
    numbers={
        "number": range(5),
        "open.number": (0, 1, 2),
        "start": (-1, 0, 1),
        "message": (1, 2),
        "find.message": (0, 1, 2),
        "to": range(5),
        "kept": range(5),
    },
)

WIDE = replace(
    BOUND,
    says="halves up to 7 of a log that begins at 0 or 1, of two messages, three questions or restarts",
    within=lambda s: s.end <= 8 and s.lives + s.answers <= 4,
    numbers={**BOUND.numbers, "number": range(10), "to": range(10), "kept": range(10)},
)
