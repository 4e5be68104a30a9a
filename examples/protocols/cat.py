"""A cat hides in one of some boxes in a row, and moves to the next one each night.

As TLA+'s Cat has it, in the folder Moving_Cat_Puzzle: boxes are looked into one after the other, forth and back.
"""

from dataclasses import dataclass
from typing import NewType

from gapless.spec.language import Bound, applies, replace

Box = NewType("Box", int)
BOXES = 6


@dataclass(frozen=True, slots=True)
class State:
    """The cat, and the box that is looked into."""

    boxes: int = 3  # which no step changes
    cat: Box = Box(0)
    looked_into: Box = Box(1)
    forth: bool = True


def begin(s: State, boxes: int, cat: Box, looked_into: Box, forth: bool) -> State:
    """The cat is anywhere, and so is the search."""
    applies(0 <= cat < boxes and 1 <= looked_into < boxes - 1)
    return replace(s, boxes=boxes, cat=cat, looked_into=looked_into, forth=forth)


def move(s: State, to: Box) -> State:
    """The cat moves, and the next box is looked into; at the ends, the search turns round."""
    applies(0 <= to < s.boxes and (to == s.cat - 1 or to == s.cat + 1))
    following = s.looked_into + (1 if s.forth else -1)
    if 1 <= following < s.boxes - 1:
        return replace(s, cat=to, looked_into=Box(following))
    return replace(s, cat=to, forth=not s.forth)


def the_cat_is_in_a_box(s: State) -> bool:
    """Otherwise it is not found."""
    return 0 <= s.cat < s.boxes


def the_first_and_the_last_box_are_left_out(s: State) -> bool:
    """Otherwise the search takes longer than it must."""
    return 1 <= s.looked_into < s.boxes - 1


INITIAL = State()
INITIALS = (begin,)
ACTIONS = (move,)
INVARIANTS = (the_cat_is_in_a_box, the_first_and_the_last_box_are_left_out)
BOUND = Bound(
    says="all states",
    within=lambda s: True,
    numbers={
        "boxes": (BOXES,),
        "cat": range(BOXES),
        "looked_into": range(BOXES),
        "forth": (0, 1),
        "to": range(BOXES),
    },
)
