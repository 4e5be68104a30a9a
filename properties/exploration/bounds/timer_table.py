"""The bound for the table of timers."""

from gapless.properties.exploration.bounds import FLAG, Bound, one_wrong

BOUND = Bound(
    says="two messages at 0 and 1, one that cancels them, and one delivery",
    within=lambda s: s.last <= 1 and s.cancelled <= 1 and 0 <= s.delivered <= 1,
    numbers={
        "position": (-1, 0, 1),
        "copies": (0, 1, 2),
        "number": (0, 1),
        "end": (0, 1),
        **dict.fromkeys(("named", "whole", "over", "handed_on"), FLAG),
    },
    worth={"find_row": lambda a: one_wrong(a.named, a.whole)},
)
