"""The bound for the offset of one consumer group in one partition."""

from gapless.properties.exploration.bounds import FLAG, Bound, untouched

BOUND = Bound(
    says="three records or markers, two producers, offsets 0 and 1",
    within=lambda s: (s.opened == 1 or untouched(s)) and s.end <= 2,
    numbers={
        "at": (0, 1, 2),
        "open.at": (-1, 0),
        "offset": (-1, 0, 1),
        "pid": (0, 1),
        "mark.pid": (-1, 0, 1),
        "commit": FLAG,
        "undecided": FLAG,
        "idle": (0, 1),
        "limit": (1,),
        "other": (0, 1),
    },
    worth={"open": lambda a: a.offset < 1 or a.at == 0},
)
