"""The bound for the op batcher."""

from dataclasses import replace

from gapless.properties.exploration.bounds import FLAG, Bound, one_wrong

NUMBERS = {
    "max_size": (0, 2),
    "interval": (0, 2),
    "number": (0, 1),
    "place": (0, 1, 2),
    "length": (0, 2),
    "count": (0, 1, 2),
    "size": (2, 4),
    "last": (0, 2, 4),
    "time": (0, 1, 2, 3),
    **dict.fromkeys(("known", "legible", "listed"), FLAG),
}
WORTH = {
    "open": lambda a: (a.max_size > 0) == (a.interval > 0),
    "write": lambda a: one_wrong(a.legible, a.listed) or (a.count == 1 and a.last == 0),
    "enqueue": lambda a: one_wrong(a.known, a.length),
}

BOUND = Bound(
    says="two halves of two bytes, bodies of two, an interval of two, three ticks, two ops, one crash",
    within=lambda s: s.clock <= 2 and s.ops <= 2 and s.entered <= 2 and s.crashes <= 1,
    numbers=NUMBERS,
    worth=WORTH,
)
WITH_DEVIATIONS = Bound(
    says="two halves of two bytes, entered up to three times, bodies of two, an interval of two, one op, one crash",
    within=lambda s: s.clock <= 2 and s.ops <= 1 and s.entered <= 3 and s.crashes <= 1,
    numbers=NUMBERS | {"time": (0, 2, 3)},
    worth=WORTH,
)

WIDE = replace(
    BOUND,
    says="four halves of two bytes, bodies of two, an interval of two, five ticks, three ops, one crash",
    within=lambda s: s.clock <= 4 and s.ops <= 3 and s.entered <= 4 and s.crashes <= 1,
    numbers={
        **NUMBERS,
        "number": range(4),
        "place": range(5),
        "count": range(5),
        "size": (2, 4, 6, 8),
        "last": (0, 2, 4, 6, 8),
        "time": range(6),
    },
)
