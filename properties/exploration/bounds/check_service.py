"""The bound for a check service."""

from gapless.properties.exploration.bounds import Bound, untouched
from gapless.spec.checkpoint import How

BOUND = Bound(
    says="two halves, one of them with a version, one op, one copy, one check",
    within=lambda s: (
        s.half_end <= 2 and s.op_end <= 1 and s.entered <= 1 and s.copy_end <= 1 and (s.opened > 0 or untouched(s))
    ),
    numbers={
        "number": (0, 1, 2),
        "enqueue.number": (-1, 0, 1),
        "max_checks": (1,),
        "length": (0, 1),
        "how": (0, 1, 2, 3, 4),
        "by": (-1, 0, 1),
        "to": (0, 1, 2, 3),
        "consume_op.number": (0, 1),
    },
    worth={"resolve": lambda a: a.by < 1 or a.how == How.VERSION},
)
