"""The bound for the log of a partition."""

from types import SimpleNamespace

from gapless.properties.exploration.bounds import FLAG, Bound, one_wrong, untouched
from gapless.spec.partition import REACH


def _likely_cut(a: SimpleNamespace) -> bool:
    """True if the rest differs in one way at most from an empty log: a time, an epoch or a later segment."""
    likely = int(a.timed == -1), int(a.newest == -1), int(a.segment == 0), int(a.since == 0)
    return a.position == 0 and one_wrong(*likely) and a.epoch in (-1, a.since)


BOUND = Bound(
    says="two batches of one record, or one of two, in two segments, two epochs, times 0 and 1",
    within=lambda s: (
        (s.opened == 1 or untouched(s))
        and s.end <= 1
        and s.segment <= 1
        and s.epoch <= 0
        # Either the watermark goes up, or an index does: both together show nothing new.
        and (s.saved == 0 or s.high == s.flushed == s.end)
        and (s.high == 0 or (s.index_reached == s.reached and s.timed == s.newest))
    ),
    numbers={
        "start": (-1, 0),
        "segment": (0, 1, 2),
        "open.segment": (0, 1),
        "offset": (0, 1),
        "position": (0, 61),
        "epoch": (-1, 0, 1),
        "open.epoch": (-1, 0),
        "since": (0, 1),
        "lead.since": (0, 1, 2),
        "newest": (-1, 0),
        "timed": (-1, 0),
        "open.newest": (-1,),
        "first": (0, 1),
        "at": (0, 1, 2),
        "again": (-1, 0),
        "last": (0, 1, REACH + 1),
        "count": (0, 1, 2),
        "size": (60, 61),
        "time": (0, 1),
        "begins": (-1, 0, 1),
        "rest": (0, 1),
        "to": (0, 1, 2),
        "kept": (0, 1, 2),
        "undecided": (-1, 0, 1),
        **dict.fromkeys(("compacted", "sound", "whole", "ordered", "dated"), FLAG),
    },
    worth={
        # What is wrong in two ways is refused for the first of them.
        "open": lambda a: one_wrong(
            int(a.start == 0),
            int(a.timed == -1),
            int(a.since == 0),
            int(a.segment == 0),
            int(a.position == 0),
            int(a.epoch == -1),
            int(a.compacted == 0),
        ),
        "append": lambda a: (
            one_wrong(
                a.sound,
                a.whole,
                a.ordered,
                a.dated,
                int(a.size == 61),
                int(a.epoch == 0),
                int(a.count == a.last - a.first + 1),
            )
            and (a.first == 0 or a.size + a.sound + a.whole + a.ordered + a.dated == 65)
        ),
        "crash": _likely_cut,
        "truncate": _likely_cut,
    },
)
