"""The bound for one transactional id of Kafka."""

from gapless.properties.exploration.bounds import FLAG, Bound, most, one_wrong, untouched

BOUND = Bound(
    says="two partitions, three offsets in the first of them, epochs 0 and 1",
    within=lambda s: (
        (s.opened == 1 or untouched(s))
        and most(s.reached) <= 2
        and s.epoch <= 1
        # Answers to producers and consumers change nothing else.
        and s.reported == 0
        and most(s.seen) < 0
    ),
    numbers={
        "phase": (-2, -1, 0, 1, 2, 4, 5),
        "pid": (0,),
        "epoch": (-1, 0, 1, 2),
        "part": (0, 1),
        "add.part": (-1, 0, 1),
        **dict.fromkeys(("write.part", "crash.part", "received.part"), (0,)),
        "first": (0, 1),
        "last": (0, 1),
        "offset": (0, 1, 2),
        "kept": (0, 1),
        "protocol": (1, 2),
        "commit": FLAG,
        "whole": FLAG,
    },
    worth={
        # What is wrong in two ways is refused for the first of them.
        "open": lambda a: a.epoch < 1 or a.phase == 1,
        "add": lambda a: 0 <= a.part or a.epoch == 0,
        "write": lambda a: a.first <= a.last or a.epoch == 0,
        "decide": lambda a: one_wrong(a.whole, int(0 <= a.epoch)),
        "time_out": lambda a: one_wrong(a.whole, int(0 <= a.epoch)),
        "mark": lambda a: 0 <= a.epoch and (a.part == 0 or a.offset == 0),
    },
)
