"""Judges records without a checksum of themselves in a log where others carry one: they were written so, or changed.

Source: docs/rocketmq.md#property-crc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from gapless.spec.log import RESTART
from gapless.traces.judging.building import STEPS
from gapless.traces.replay.exact import Event
from gapless.traces.report.wording import plural
from gapless.traces.sources.rocketmq.blame.log import BARE_RECORDS
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.segments.checksums import BARE, CARRIES
from gapless.traces.sources.rocketmq.segments.results import Segment

LOG = STEPS["log"]
FAR = 1 << 60  # ms: nothing says that no restart lies between two records
FEW = 2  # records: so many without a checksum may be damage as well as one life of a broker


class ChecksumStretch(NamedTuple):
    """Records that all carry a checksum of themselves, or of which none does; rows as in `segments/checksums.py`."""

    kind: int
    first: int
    last: int
    records: int
    began: int
    ended: int


class Neighbours(NamedTuple):
    """A stretch without checksums, and the stretches next to it in which records carry them."""

    stretch: ChecksumStretch
    before: ChecksumStretch | None
    behind: ChecksumStretch | None


class ChecksumJudge:
    """Joins the stretches of all segments; `step` replays an event of the log, and is True if it was accepted.

    `open`: the last stretch so far · `before`: the one before it.
    """

    def __init__(self, judged: StoreFindings, step: Callable[[Event, str], bool]) -> None:
        self.judged = judged
        self.step = step
        self.open: ChecksumStretch | None = None
        self.before: ChecksumStretch | None = None

    def add(self, segment: Segment) -> None:
        """Adds the stretches of a segment; results come in log order."""
        for row in segment.stretches.T.tolist():
            self._add(ChecksumStretch(*row))

    def _add(self, new: ChecksumStretch) -> None:
        last, within = self.open, self.judged.store.sealed
        if last is None or last.kind != new.kind or new.first in within:
            if last is not None and last.kind == BARE:
                self._judge(Neighbours(last, _carrying(self.before), _carrying(new)))
            self.before, self.open = last, new
            return
        self.open = new._replace(first=last.first, records=last.records + new.records, began=last.began)

    def finish(self) -> None:
        """Judges the last stretch."""
        if self.open is not None and self.open.kind == BARE:
            self._judge(Neighbours(self.open, _carrying(self.before), None))

    def _judge(self, found: Neighbours) -> None:
        taken = [self.step(event, others) for event, others in self._events(found)]
        self.judged.cover("log", {"omit": sum(taken)})
        if taken and all(taken) and found.stretch.records <= FEW and not self._is_explained(found):
            self.judged.blame(BARE_RECORDS, count=found.stretch.records, first=found.stretch.first)

    def _events(self, found: Neighbours) -> Iterator[tuple[Event, str]]:
        """Yields what is asked of the first and the last record of a stretch, and for which others."""
        stretch, (since, until) = found.stretch, self.judged.store.sealed
        if not (found.before or found.behind or since <= stretch.first < until):
            return
        before = self._pause(found.before, stretch)
        behind = self._pause(stretch, found.behind)
        alone = stretch.records == 1
        others = "" if alone else plural(stretch.records - 1, "record")
        nearest = min(before, behind) if alone else before
        first = LOG.omit(position=stretch.first, since=since, until=until, pause=_known(nearest))
        yield first, others and f"and the {others} behind it"
        if found.behind and not alone:
            last = LOG.omit(position=stretch.last, since=since, until=until, pause=_known(behind))
            yield last, f"and the {others} before it"

    def _pause(self, before: ChecksumStretch | None, behind: ChecksumStretch | None) -> int:
        """The time in which the broker may have been started again, in ms, from one stretch to the next.

        A broker that starts on a log of one record, or of none, writes what it would write in its first life.
        """
        store = self.judged.store
        if before is None or behind is None or store.ours or store.replicated or behind.began < before.ended:
            return FAR
        return 0 if store.first_life and before.last > 0 else behind.began - before.ended

    def _is_explained(self, found: Neighbours) -> bool:
        """True if the settings say that the last life of the broker wrote no checksums."""
        store = self.judged.store
        return found.behind is None and bool(store.settings) and not store.setting("enabledAppendPropCRC")


def _known(pause: int) -> int:
    """The pause, or one that is just long enough where nothing is known of it."""
    return pause if pause < FAR else RESTART


def _carrying(stretch: ChecksumStretch | None) -> ChecksumStretch | None:
    return stretch if stretch is not None and stretch.kind == CARRIES else None
