"""How far the op batcher is explored."""

from gapless.properties.exploration.bounds import FLAG, Bound, most

BOUND = Bound(
    says="two halves of two bytes, bodies of three, an interval of two, three ticks, two ops",
    within=lambda s: s.clock <= 3 and s.ops <= 2 and s.count <= 2 and most(s.named) <= 2,
    numbers={
        "max_size": (0, 3),
        "interval": (0, 2),
        "number": (0, 1),
        "length": (0, 2),
        "count": (0, 1, 2),
        "size": (2, 3, 4),
        "last": (0, 2),
        "time": (0, 1, 2, 3, 4),
        **dict.fromkeys(("known", "legible", "listed"), FLAG),
    },
)
