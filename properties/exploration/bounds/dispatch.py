"""The bound for ordered parallel dispatch."""

from dataclasses import replace

from gapless.properties.exploration.bounds import FLAG, Bound, untouched

BOUND = Bound(
    says="messages 1 to 5 of a queue found at 1, one worker or several, one crash",
    within=lambda s: s.scanned <= 6 and s.lives <= 2 and (s.start == 1 or untouched(s)),
    numbers={
        "number": range(7),
        "open.number": (-1, 1),
        "overlap": FLAG,
        "to": range(8),
        "kept": range(8),
    },
)

WIDE = replace(
    BOUND,
    says="messages 1 to 10 of a queue found at 1, one worker or several, two crashes",
    within=lambda s: s.scanned <= 11 and s.lives <= 3 and (s.start == 1 or untouched(s)),
    numbers={**BOUND.numbers, "number": range(12), "to": range(13), "kept": range(13)},
)
