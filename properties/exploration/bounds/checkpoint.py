"""The bound for the two cursors of the check service."""

from dataclasses import replace

from gapless.properties.exploration.bounds import Bound, untouched
from gapless.spec.checkpoint import How

BOUND = Bound(
    says="two halves from number 0 or 1 on, an op, a copy, and one crash",
    within=lambda s: (
        s.half_end <= 2 and s.op_end <= 1 and s.copy_end <= 1 and s.crashes <= 1 and (s.opened > 0 or untouched(s))
    ),
    numbers={
        "number": (0, 1, 2),
        "half": (-1, 0, 1),
        "op": (-1, 0, 1),
        "copy": (0, 1),
        "flush.half": (0, 1, 2, 3),
        "flush.op": (0, 1),
        "crash.half": (0, 1, 2, 3),
        "to": (0, 1, 2, 3),
        "reach": (0, 1, 2),
        "how": (0, 1, 2, 3, 4),
        "by": (-1, 0, 1),
    },
    worth={
        "op": lambda a: a.number < 1 or a.reach == 0,  # beyond the bound one op is as good as another
        "resolve": lambda a: a.by < 1 or a.how == How.VERSION,
        "flush": lambda a: a.op == a.copy or a.half == 1,
    },
)

WIDE = replace(
    BOUND,
    says="three halves from number 0 or 1 on, two ops, a copy, and one crash",
    within=lambda s: (
        s.half_end <= 3 and s.op_end <= 2 and s.copy_end <= 1 and s.crashes <= 1 and (s.opened > 0 or untouched(s))
    ),
    numbers={
        **BOUND.numbers,
        "number": range(4),
        "half": (-1, 0, 1, 2),
        "op": (-1, 0, 1, 2),
        "flush.half": range(5),
        "flush.op": (0, 1, 2),
        "crash.half": range(5),
        "to": range(5),
        "reach": range(4),
    },
)
