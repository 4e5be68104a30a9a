"""The bound for a queue in tiered storage."""

from gapless.properties.exploration.bounds import FLAG, Bound, one_wrong

BOUND = Bound(
    says="logs that begin at 0 or 1 and go up to 3, two entries, messages of one byte",
    within=lambda s: s.log_end <= 3 and s.end - s.first <= 2 and s.first <= 1 and s.reached <= 3,
    numbers={
        "start": (-1, 0, 1),
        "base": (0, 1, 2, 3),
        "committed": (-1, 0, 1, 2),
        "length": (1, 2),
        "open.number": (-1, 0, 1),
        "find_queue_file.number": (0, 1, 2, 3),
        "find_entry.number": (0, 1, 2),
        "outlive.number": (0, 1, 2),
        "position": (0, 1, 2),
        "size": (0, 1),
        "tag": (0,),
        "its_number": (0, 1, 2),
        "its_position": (0, 1, 2),
        "its_size": (0, 1, 2),
        "its_tag": (0, 1),
        "lies": FLAG,
        "whole": FLAG,
        "owned": FLAG,
        "same": FLAG,
        "intact": FLAG,
    },
    worth={
        # What is wrong in two ways is refused for the first of them.
        "find_entry": lambda a: one_wrong(
            a.lies,
            a.whole,
            a.owned,
            a.same,
            a.intact,
            int(a.its_number == a.number),
            int(a.its_position == a.position),
            int(a.its_size == a.size),
            int(a.its_tag == a.tag),
        ),
    },
)
