"""The bound for one transaction, from end to end."""

from gapless.properties.exploration.bounds import Bound, most, untouched

BOUND = Bound(
    says="four records, those of others among them, one check, two starts, one question",
    within=lambda s: (
        s.checks <= 1
        and s.lives <= 2
        and most(s.commits_asked) + most(s.rollbacks_asked) <= 1
        and (s.lives > 0 or untouched(s))
    ),
    numbers={
        "number": (-1, 0, 1),
        "prepare.number": (-1, 0),
        "ask_to_commit.number": (0, 1),
        "ask_to_roll_back.number": (0, 1),
        "max_checks": (1,),
        "file_size": (8, 12),
        "position": range(-1, 6),
        "times": range(3),
        "later": range(3),
        "group": (1, 2),
        "queue": (1, 2),
        "prepare.group": (1,),
        "prepare.queue": (1,),
    },
)
