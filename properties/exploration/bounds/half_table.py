"""The bound for the table of halves."""

from gapless.properties.exploration.bounds import FLAG, Bound, one_wrong

BOUND = Bound(
    says="a half at 0 or 1, of a byte or two, and two decisions",
    within=lambda s: s.decisions <= 2,
    numbers={
        "position": (-1, 0, 1),
        "size": (0, 1, 2),
        "checks": (-1, 0, 1, 2),
        "limit": (0, 1),
        **dict.fromkeys(("owned", "within", "spent", "there"), FLAG),
    },
    worth={"find_row": lambda a: one_wrong(a.owned, a.within)},
)
