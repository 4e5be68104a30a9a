"""How far the two cursors of the check service are explored."""

from gapless.properties.exploration.bounds import Bound

BOUND = Bound(
    says="three halves from number 0 or 1 on, and two ops",
    within=lambda s: s.half_end <= 3 and s.op_end <= 2,
    numbers={
        "half.number": (0, 1, 2, 3),
        "number": (0, 1, 2, 3),
        "half": (-1, 0, 1),
        "op": (-1, 0),
        "to": (0, 1, 2, 3, 4),
        "reach": (0, 1, 3),
    },
    worth={"op": lambda a: a.number < 2 or a.reach == 0},  # beyond the bound one op is as good as another
)
