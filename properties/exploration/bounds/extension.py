"""The bound for the extension of a queue."""

from gapless.properties.exploration.bounds import FLAG, Bound

BOUND = Bound(
    says="two units, with and without a bitmap",
    within=lambda s: s.units <= 2,
    numbers={
        "number": (0, 1),
        "size": (20, 34),
        "bitmap": (-1, 0, 14),
        "room": (3, 4),
        "length": (1, 2),
        "full": (2,),
        "whole": FLAG,
        "timely": FLAG,
    },
)
