"""The polymerase chain reaction, which copies DNA: heated, strands separate; cooled, primers begin new ones.

As TLA+'s clean has it, in the folder glowingRaccoon.
"""

from dataclasses import dataclass
from enum import IntEnum

from gapless.spec.language import Bound, applies, replace, require

DNA = 5
PRIMERS = 5


class Heat(IntEnum):
    """The temperatures."""

    WARM = 0
    HOT = 1
    TOO_HOT = 2


@dataclass(frozen=True, slots=True)
class State:
    """The numbers of molecules of each kind."""

    begun: int = PRIMERS + 2 * DNA  # the strands at the beginning, which no step changes
    heat: Heat = Heat.HOT
    primers: int = PRIMERS
    double: int = DNA
    single: int = 0
    hybrid: int = 0  # a single strand with a primer


def warm_up(s: State) -> State:
    """All double strands and hybrids separate."""
    applies(s.heat == Heat.HOT)
    return replace(
        s,
        heat=Heat.TOO_HOT,
        primers=s.primers + s.hybrid,
        double=0,
        single=s.single + s.hybrid + 2 * s.double,
        hybrid=0,
    )


def cool(s: State) -> State:
    """It cools down."""
    applies(s.heat == Heat.TOO_HOT)
    return replace(s, heat=Heat.HOT)


def anneal(s: State, count: int) -> State:
    """Primers attach to single strands."""
    applies(s.heat == Heat.HOT and 0 < count)
    require(
        count <= s.primers and count <= s.single,
        "there-are-so-many",
        because="there are so many primers and single strands",
        otherwise="matter comes from nothing",
    )
    return replace(
        s,
        heat=Heat.WARM,
        primers=s.primers - count,
        single=s.single - count,
        hybrid=s.hybrid + count,
    )


def extend(s: State) -> State:
    """Each hybrid becomes a double strand."""
    applies(s.heat == Heat.WARM)
    return replace(s, heat=Heat.HOT, double=s.double + s.hybrid, hybrid=0)


def nothing_is_lost(s: State) -> bool:
    """Otherwise matter comes from nothing, or goes there."""
    return s.single + s.primers + 2 * (s.double + s.hybrid) == s.begun


def there_are_no_fewer_than_none(s: State) -> bool:
    """Otherwise more was used than there was."""
    return s.primers >= 0 and s.single >= 0 and s.double >= 0 and s.hybrid >= 0


INITIAL = State()
ACTIONS = (warm_up, cool, anneal, extend)
INVARIANTS = (nothing_is_lost, there_are_no_fewer_than_none)
BOUND = Bound(says="all states", within=lambda s: True, numbers={"count": range(1, PRIMERS + 1)})
