"""The bound for one producer in a partition."""

from gapless.properties.exploration.bounds import FLAG, Bound, one_wrong, untouched
from gapless.spec.producer import SEQUENCES

BOUND = Bound(
    says="two batches or markers of one record, or one of two, epochs 0 and 1, sequences where they begin at 0 again",
    within=lambda s: (s.opened == 1 or untouched(s)) and s.end <= 1 and s.epoch <= 1,
    numbers={
        "known": FLAG,
        "epoch": (0, 1, 2),
        "open.epoch": (0,),
        "append.epoch": (0, 1),
        "snapshot.epoch": (0, 1),
        "sequence": (-1, 0, 1, SEQUENCES - 1),
        "append.sequence": (0, 1, SEQUENCES - 1),
        "open.sequence": (-2, -1, 0, SEQUENCES - 1),
        "offset": (-1, 0, 1),
        "mark.offset": (0, 1),
        "delta": (0, 1),
        "open.delta": (0,),
        "time": (0,),
        "snapshot.time": (0, 1),
        "coordinator": (-1, 0),
        "open.coordinator": (-1,),
        "transaction": (-1, 0, 1),
        "open.transaction": (-1, 0),
        "first": (0, 1),
        "last": (0, 1),
        "at": (0, 1, 2),
        "open.at": (0, 1),
        "idle": (0, 1),
        "limit": (1,),
        "start": (0, 1, 2),
        **dict.fromkeys(("compacted", "checked", "transactional"), FLAG),
    },
    worth={
        "open": lambda a: (
            (a.at, a.sequence, a.offset, a.transaction) == (0, -1, -1, -1)
            if a.known == 0
            else a.offset < 1 and a.sequence in (a.offset, a.offset - 1, SEQUENCES - 1)
        ),
        "append": lambda a: a.first <= a.last or a.epoch + a.sequence == 0,
        # What is wrong in two ways is refused for the first of them.
        "snapshot": lambda a: (
            (
                a.at == 2
                and one_wrong(
                    int(a.delta == 0),
                    int(a.time == 0),
                    int(a.sequence == a.offset),
                    int(a.coordinator == -1),
                    int(a.transaction == -1),
                    int(a.epoch == 0),
                )
            )
            or (
                a.at < 2 and a.epoch + a.delta + a.time + a.sequence + a.coordinator == -1 and a.offset == a.transaction
            )
        ),
    },
)
