"""The bound for a compacted queue."""

from gapless.properties.exploration.bounds import FLAG, Bound, one_wrong

BOUND = Bound(
    says="two files of at most two messages of one byte, numbers up to 2, and two that are missed",
    within=lambda s: s.files <= 2 and s.reached <= 2 and s.end <= 3 and s.misses <= 2,
    numbers={
        "base": (0, 1, 2),
        "records": FLAG,
        "entries": FLAG,
        "number": (0, 1, 2),
        "position": (0, 1, 2),
        "size": (1,),
        "tag": (0,),
        "time": (0,),
        "count": (1, 2),
        "its_number": (0, 1, 2),
        "its_position": (0, 1, 2),
        "its_size": (1, 2),
        "its_tag": (0, 1),
        "its_time": (0, 1),
        "later": (-1, 1, 2, 3),
        **dict.fromkeys(
            ("lies", "whole", "owned", "keyed", "same", "intact", "given", "hollow", "numbered", "sized"), FLAG
        ),
    },
    worth={
        # What is wrong in two ways is refused for the first of them.
        "find_entry": lambda a: one_wrong(
            a.lies,
            a.whole,
            a.owned,
            a.keyed,
            a.same,
            a.intact,
            int(a.count == 1),
            int(a.its_number == a.number),
            int(a.its_position == a.position),
            int(a.its_size == a.size),
            int(a.its_tag == a.tag),
            int(a.its_time == a.time),
        ),
    },
)
