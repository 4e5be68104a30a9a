"""The bound for a file of the hash index."""

from dataclasses import replace

from gapless.properties.exploration.bounds import FLAG, Bound

BOUND = Bound(
    says="files of one or two slots, up to three items of records at 0 to 2",
    within=lambda s: s.items <= 4,
    numbers={
        "slots": (0, 1, 2),
        "slot": (0, 1),
        "one": (0, 1),
        "other": (0, 1),
        "previous": range(4),
        "head": range(5),
        "position": (0, 1, 2),
        "first": (0, 1),
        "last": (0, 1, 2),
        "used": range(3),
        "items": range(1, 6),
        "owned": FLAG,
        "timely": FLAG,
        "found": FLAG,
    },
)

WIDE = replace(
    BOUND,
    says="files of one to three slots, up to eight items of records at 0 to 6",
    within=lambda s: s.items <= 9,
    numbers={
        **BOUND.numbers,
        "slots": range(4),
        "slot": range(3),
        "one": range(3),
        "other": range(3),
        "previous": range(9),
        "head": range(10),
        "position": range(7),
        "first": range(7),
        "last": range(7),
        "used": range(4),
        "items": range(1, 10),
    },
)
