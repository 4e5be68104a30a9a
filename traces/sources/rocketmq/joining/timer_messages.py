"""The messages with a time of a log: as workers found them while they scanned it, or as one more pass finds them."""

from __future__ import annotations

import numpy as np

from gapless.traces.options import Options
from gapless.traces.sources.rocketmq.joining.judged import JudgedStore
from gapless.traces.sources.rocketmq.segments.tasks import Segment
from gapless.traces.sources.rocketmq.store.bytes import Ints
from gapless.traces.sources.rocketmq.store.timer_records import TimerRows, timer_rows


class TimerMessages:
    """What segments of one log have of them, as far as one follows the other from its beginning on."""

    def __init__(self, judged: JudgedStore, options: Options) -> None:
        self.judged = judged
        self.options = options
        self.found: list[Ints] = []
        self.reached = judged.store.start

    def take(self, segment: Segment) -> None:
        """Remember what one segment's worker found."""
        if segment.timers is not None and segment.start == self.reached:
            self.found.append(segment.timers)
            self.reached = segment.end

    def rows(self) -> tuple[TimerRows, int]:
        """All of the log that was judged, and how far records could be followed.

        What workers found is that if they saw all of the log, and nothing of it departs or might: in damage they see
        more than can be followed.
        """
        judged = self.judged
        departs = judged.damage or self.options.ignored or any(found.spec == "log" for found in judged.breaches)
        if departs or self.reached != judged.end or not self.found:
            return timer_rows(judged.store, judged.end)
        if len(self.found) > 1:
            self.found = [_joined(self.found)]
        return TimerRows(*self.found[0]), self.reached


def _joined(parts: list[Ints]) -> Ints:
    """The same columns in one piece. Each part goes once it is copied: there may be little room for all of it twice."""
    every, at = np.empty((len(parts[0]), sum(part.shape[1] for part in parts)), np.int64), 0
    parts.reverse()
    while parts:
        part = parts.pop()
        every[:, at : at + part.shape[1]] = part
        at += part.shape[1]
    return every
