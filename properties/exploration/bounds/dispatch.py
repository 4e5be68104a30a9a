"""How far ordered parallel dispatch is explored."""

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
