"""Chameneos meet two by two, and both take the colour that neither has; after some meetings they fade.

As TLA+'s Chameneos has it.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NewType

from gapless.spec.language import Bound, Map, applies, every_map, replace, require

Creature = NewType("Creature", int)
CREATURES = 2
MEETINGS = 4


class Colour(IntEnum):
    """The colours."""

    BLUE = 0
    RED = 1
    YELLOW = 2
    FADED = 3


@dataclass(frozen=True, slots=True)
class State:
    """The creatures, and the one that waits at the meeting place."""

    colour: Map[Creature, Colour] = Map(Colour.BLUE)
    met: Map[Creature, int] = Map(0)  # how often each has met another
    waiting: Creature = Creature(-1)
    meetings: int = 0


def begin(s: State, colour: Map[Creature, Colour]) -> State:
    """The creatures have any colours."""
    return replace(s, colour=colour)


def wait(s: State, creature: Creature) -> State:
    """A creature comes to the empty meeting place."""
    applies(0 <= creature and s.colour[creature] != Colour.FADED)
    applies(s.waiting == -1)
    require(
        s.meetings < MEETINGS,
        "a-meeting-is-left",
        because="a meeting is left",
        otherwise="a creature waits for ever",
    )
    return replace(s, waiting=creature)


def fade(s: State, creature: Creature) -> State:
    """A creature finds that all meetings are over."""
    applies(0 <= creature and s.colour[creature] != Colour.FADED)
    applies(s.waiting == -1)
    require(
        s.meetings == MEETINGS,
        "meetings-are-over",
        because="all meetings are over",
        otherwise="the others wait for it",
    )
    return replace(s, colour=s.colour.set(creature, Colour.FADED))


def meet(s: State, creature: Creature) -> State:
    """A creature meets the one that waits."""
    applies(0 <= creature and s.colour[creature] != Colour.FADED)
    applies(s.waiting != -1)
    require(creature != s.waiting, "creatures-are-two", because="there are two of them", otherwise="one meets itself")
    mixture = mixed(s.colour[creature], s.colour[s.waiting])
    return replace(
        s,
        colour=s.colour.set(creature, mixture).set(s.waiting, mixture),
        met=s.met.set(creature, s.met[creature] + 1).set(s.waiting, s.met[s.waiting] + 1),
        waiting=Creature(-1),
        meetings=s.meetings + 1,
    )


def mixed(one: Colour, other: Colour) -> Colour:
    """The colour that neither has; that of both, if they have the same."""
    if one == other:
        return one
    if one != Colour.BLUE and other != Colour.BLUE:
        return Colour.BLUE
    return Colour.YELLOW if one == Colour.RED or other == Colour.RED else Colour.RED


def there_are_no_more_meetings(s: State) -> bool:
    """Otherwise they meet for ever."""
    return 0 <= s.meetings and s.meetings + (0 if s.waiting == -1 else 1) <= MEETINGS


def who_waits_has_not_faded(s: State) -> bool:
    """Otherwise a creature meets one that has gone."""
    return s.waiting == -1 or s.colour[s.waiting] != Colour.FADED


INITIAL = State()
INITIALS = (begin,)
ACTIONS = (wait, fade, meet)
INVARIANTS = (there_are_no_more_meetings, who_waits_has_not_faded)
BOUND = Bound(
    says="all states",
    within=lambda s: True,
    numbers={
        "colour": every_map(range(CREATURES), (Colour.BLUE, Colour.RED, Colour.YELLOW), Colour.BLUE),
        "creature": range(CREATURES),
    },
)
