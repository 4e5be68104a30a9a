"""The bound for the messages and entries of one queue."""

from dataclasses import replace

from gapless.properties.exploration.bounds import FLAG, Bound
from gapless.spec.queue import BLANK_SLOT

BOUND = Bound(
    says="two messages from number 0 or 1 on, at positions 10 and 20, with or without a tag",
    within=lambda s: s.end - s.first <= 2 and s.end <= 3,
    numbers={
        "number": (-1, 0, 1, 2, 3),
        "open.number": (-1, 0, 1),
        "start": (0, 10, 20),
        "open.start": (0, 10),
        "count": (0, 1, 2),
        "position": (10, 20),
        "index.position": (0, 10, 20),
        "outlive.position": (0, 10, 20),
        "tell_last.position": (0, 10, 20),
        "size": (1,),
        "index.size": (1, 2, BLANK_SLOT),
        "index_batch.size": (1, 2),
        "tag": (0, 1),
        "base": (0,),
        "length": (1, 2),
        "full": (2,),
        "upto": (0, 10, 15, 25),
        "sent": FLAG,
        "same": FLAG,
    },
    worth={
        # Beyond the bound one message is as good as another.
        "append": lambda a: a.number + a.count <= 3 or (a.position, a.tag) == (10, 0),
    },
)

WIDE = replace(
    BOUND,
    says="four messages from number 0 or 1 on, at positions 10, 20 and 30, with or without a tag",
    within=lambda s: s.end - s.first <= 4 and s.end <= 5,
    numbers={
        **BOUND.numbers,
        "number": range(-1, 6),
        "position": (10, 20, 30),
        "upto": (0, 10, 15, 25, 35),
        **dict.fromkeys(("index.position", "outlive.position", "tell_last.position", "start"), (0, 10, 20, 30)),
    },
    worth={"append": lambda a: a.number + a.count <= 5 or (a.position, a.tag) == (10, 0)},
)
