"""The bound for the table of keys."""

from gapless.properties.exploration.bounds import FLAG, Bound, one_wrong

BOUND = Bound(
    says="a record at 0 or 1 with up to two keys, passed once",
    within=lambda s: s.keys <= 2 and s.passed <= 1,
    numbers={
        "position": (-1, 0, 1),
        "keys": (-1, 0, 1, 2),
        **dict.fromkeys(("owned", "timely", "in_hour", "there"), FLAG),
    },
    worth={"find_row": lambda a: one_wrong(a.owned, a.timely, a.in_hour)},
)
