"""The bound for one start of a broker."""

from gapless.properties.exploration.bounds import FLAG, Bound
from gapless.spec.startup import FIVE, OLDEST

BOUND = Bound(
    says="brokers of versions 4 and 5, and files of up to two bytes",
    within=lambda s: s.version <= FIVE,
    numbers={
        "version": (OLDEST - 1, OLDEST, FIVE, FIVE + 1),
        "folder": FLAG,
        "numbered": FLAG,
        "last": FLAG,
        "length": (0, 1, 2),
        "full": (0, 1, 2),
        "file": range(4),
        "backup": range(4),
        "needed": FLAG,
        "level": (1, 2),
        "levels": (1, 2),
    },
)
