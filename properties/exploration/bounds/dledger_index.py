"""The bound for the index of a DLedger log."""

from gapless.properties.exploration.bounds import FLAG, Bound, one_wrong

BOUND = Bound(
    says="logs that begin at entry 0 or 1, three entries, and two that are missing",
    within=lambda s: s.end <= 3 and s.missing <= 2,
    numbers={
        "first": (-1, 0, 1),
        "number": (0, 1, 2, 3),
        "position": (0, 1),
        "size": (0, 1),
        "term": (0, 1),
        "its_number": (0, 1, 2, 3),
        "its_position": (0, 1),
        "its_size": (0, 1),
        "its_term": (0, 1),
        "known": FLAG,
        "killed": FLAG,
        "numbered": FLAG,
        "sized": FLAG,
    },
    worth={
        "find_unit": lambda a: one_wrong(
            a.known,
            int(a.its_number == a.number),
            int(a.its_position == a.position),
            int(a.its_size == a.size),
            int(a.its_term == a.term),
        ),
    },
)
