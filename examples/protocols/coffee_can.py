"""The coffee can: two equal beans are replaced by a black one, of two others the white one is put back.

As TLA+'s CoffeeCan has it. The last bean is white if there was an odd number of white ones.
"""

from dataclasses import dataclass

from gapless.spec.language import Bound, applies, replace

BEANS = 100  # at most


@dataclass(frozen=True, slots=True)
class State:
    """The beans in the can."""

    black: int = 1
    white: int = 0


def fill(s: State, black: int, white: int) -> State:
    """The can is filled."""
    applies(0 <= black and 0 <= white and 1 <= black + white)
    return replace(s, black=black, white=white)


def take_two_black(s: State) -> State:
    """Two black beans are taken, and a black one is put back."""
    applies(s.black >= 2)
    return replace(s, black=s.black - 1)


def take_two_white(s: State) -> State:
    """Two white beans are taken, and a black one is put back."""
    applies(s.white >= 2)
    return replace(s, black=s.black + 1, white=s.white - 2)


def take_both(s: State) -> State:
    """A bean of each colour is taken, and the white one is put back."""
    applies(s.black >= 1 and s.white >= 1)
    return replace(s, black=s.black - 1)


def a_bean_is_left(s: State) -> bool:
    """Otherwise more was taken than there was."""
    return s.black >= 0 and s.white >= 0 and s.black + s.white >= 1


def one_bean_fewer_each_time(before: State, after: State) -> bool:
    """Otherwise it never ends."""
    return after.black + after.white == before.black + before.white - 1


def white_beans_stay_odd_or_even(before: State, after: State) -> bool:
    """Otherwise the colour of the last bean is chance."""
    return before.white % 2 == after.white % 2


INITIAL = State()
INITIALS = (fill,)
ACTIONS = (take_two_black, take_two_white, take_both)
INVARIANTS = (a_bean_is_left,)
STEP_PROPERTIES = (one_bean_fewer_each_time, white_beans_stay_odd_or_even)
BOUND = Bound(
    says="all states",
    within=lambda s: True,
    numbers={"black": range(BEANS + 1), "white": lambda black: range(BEANS + 1 - black)},
)
