"""The bound for the chains of the timer wheel."""

from gapless.properties.exploration.bounds import FLAG, Bound, one_wrong

TIMES = {(0, 0, 0), (0, 1, 1), (0, 1, 0), (1, 1, 1), (1, 0, 0)}  # time, due, rolled
NUMBERS = {
    "start": (-1, 0, 1),
    "position": (-1, 0, 1, 2, 3),
    "before": (-2, -1, 0, 1, 2),
    "first": (-1, 0, 1),
    "last": (-1, 0, 1, 2),
    "time": (0, 1),
    "due": (0, 1),
    "number": (-1, 0),
    "count": (-1, 0, 1, 2),
    "copies": (0, 1, 2),
    **dict.fromkeys(("rolled", "cancels", "whole", "waits", "marked", "again", "counted", "there", "cancelled"), FLAG),
}
WORTH = {
    "schedule": lambda a: one_wrong(a.whole, a.waits, a.marked, not a.again) and (a.time, a.due, a.rolled) in TIMES,
}

BOUND = Bound(
    says="timer logs that begin at 0 or 1, three units, one of which may cancel, all delivered",
    within=lambda s: s.units <= 2 and s.last <= 2,
    numbers=NUMBERS,
    worth=WORTH,
)
