"""The bound for the transaction coordinator."""

from dataclasses import replace

from gapless.properties.exploration.bounds import Bound, untouched
from gapless.spec.coordinator import AT_BIRTH

BOUND = Bound(
    says="limits -1 to 2, and 1 after a recovery; two transactions, all that can befall the first; one is ignored",
    within=lambda s: (
        (s.opened == 1 or untouched(s))
        and s.end <= 2
        and s.peak <= 2
        and s.ignored <= 1
        and s.added[0] <= s.handed[0]
        and s.fates[3] == 0
    ),
    numbers={
        "number": (0, 1, 2),
        "other": (0, 1, 2),
        **dict.fromkeys(("load.number", "decide.number", "time_out.number", "finish.number"), (0, 1)),
        **dict.fromkeys(("hand.number", "add.number", "acknowledge.number"), (0,)),
        "request": (0, 1, 2),
        "admit.request": (0, 1, 3),
        "burn.request": (0, 1),
        "ignore.request": (1, 2),
        "hand.request": (0, 1),
        "limit": (-1, 0, 1, 2),
        "recover.limit": (1,),
        "status": range(6),
        "decide.to": (2, 3, 4),
        "finish.to": (4, 5),
        "time": (0,),
        "time_out.time": (0, 1),
        "life": (1, AT_BIRTH),
    },
    worth={
        "begin": lambda a: a.life == (1 if a.number == 0 else AT_BIRTH) and a.request == a.number,
        "decide": lambda a: a.number == 0 or a.to != 3,
    },
)

WITH_DEVIATIONS = replace(
    BOUND,
    says="limits -1 to 2, and 1 after a recovery; two transactions, of which the second stays open; one is ignored",
    numbers={**BOUND.numbers, "decide.number": (0,), "finish.number": (0,)},
)
