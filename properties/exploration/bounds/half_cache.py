"""The bound for the cache of half messages."""

from dataclasses import replace

from gapless.properties.exploration.bounds import Bound, untouched

BOUND = Bound(
    says="halves 1 to 3 of a cache found at 1, the first of two messages, with room for two, one question or restart",
    within=lambda s: s.end <= 4 and s.lives + s.answers <= 2 and (s.start == 1 or untouched(s)),
    numbers={
        "number": range(5),
        "open.start": (-1, 1),
        "open.number": (0, 1),
        "message": (1, 2),
        "capacity": (-1, 0, 1, 2),
        "place": range(-1, 6),
        "to": range(6),
        "kept": range(6),
    },
    worth={
        # One half may be another message in another life; of the others, one is as good as another.
        "append": lambda a: a.message == 1 or a.number == 1,
    },
)

WIDE = replace(
    BOUND,
    says="halves 1 to 4 of a cache found at 1, with room for up to three, three questions or restarts",
    within=lambda s: s.end <= 5 and s.lives + s.answers <= 4 and (s.start == 1 or untouched(s)),
    numbers={
        **BOUND.numbers,
        "number": range(6),
        "place": range(-1, 7),
        "to": range(7),
        "kept": range(7),
        "capacity": range(-1, 4),
    },
)
