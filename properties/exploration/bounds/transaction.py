"""The bound for one transaction."""

from dataclasses import replace

from gapless.properties.exploration.bounds import FLAG, Bound, count_entries, most, one_wrong

BOUND = Bound(
    says="two versions of the half, one check, every question asked once",
    within=lambda s: most(s.commits_asked) <= 1 and most(s.rollbacks_asked) <= 1 and s.checks <= 1 and s.restarted == 0,
    numbers={
        "start": (0, 10),
        "max_checks": (0, 1),
        "witnessed": (0, 1),
        "number": (0, 1),
        "parent": (0, 1),
        "position": (-1, 10, 20),
        "half": (-1, 10, 20),
        "times": (0, 1, 2),
        "outlive.times": (-1, 0, 1, 2),
        "other": (0, 1),
        "twice": (0,),
        **dict.fromkeys(("asked", "same", "aged", "marked"), FLAG),
    },
    worth={
        "open": lambda a: (a.start > 0) + a.max_checks + a.witnessed != 2,  # all but what is between
        "prepare": lambda a: a.position in (10 + 10 * a.number, -1),
        "outlive": lambda a: a.position in (10 + 10 * a.number, -1),
        "check": lambda a: a.position == 10 + 10 * a.number or (a.position < 0 and one_wrong(0, a.asked, a.same)),
        "commit": lambda a: a.position == 10,  # where the final lies, which makes no difference
        "park": lambda a: a.position == 10,
    },
)

WITH_DEVIATIONS = replace(
    BOUND,
    says="two versions of the half, one check, two decisions and answers, one op each",
    within=lambda s: (
        most(s.commits_asked) + most(s.rollbacks_asked) == 0
        and s.finals + most(s.rollbacks) + most(s.commits_reported) <= 2
        and most(s.marks) <= 1
        and s.checks <= 1
        and count_entries(s.positions) <= 2
        and (s.restarted == 0 if s.max_checks == 0 else s.restarted == 1 or s.phase == 0)  # the limit is another one
    ),
    numbers={
        **BOUND.numbers,
        "start": (10,),
        "max_checks": (0, 1),
        "witnessed": (0,),
        "position": (10, 20),
        "check.number": (1, 2),
        "outlive.times": (0, 1),
        "ask_to_commit.number": (0,),
        "ask_to_roll_back.number": (0,),
        "acknowledge.number": (0,),
        "twice": FLAG,
    },
    worth={
        **BOUND.worth,
        "open": lambda _: True,
        "check": lambda a: a.parent < a.number and a.position == 20 and one_wrong(a.asked, a.same),
        "park": lambda a: a.position == 10 and one_wrong(a.same, a.aged),
        "commit": lambda a: a.position == 10 and one_wrong(a.same, 1 - a.twice),
    },
)

WIDE = replace(
    BOUND,
    says="four versions of the half, three checks, every question asked once",
    within=lambda s: most(s.commits_asked) <= 1 and most(s.rollbacks_asked) <= 1 and s.checks <= 3 and s.restarted == 0,
    numbers={
        **BOUND.numbers,
        **dict.fromkeys(("max_checks", "number", "parent", "other"), range(4)),
        **dict.fromkeys(("position", "half"), (-1, 10, 20, 30, 40)),
        "times": range(5),
        "outlive.times": range(-1, 5),
    },
    worth={**BOUND.worth, "open": lambda _: True},
)
