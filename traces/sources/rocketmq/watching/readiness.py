"""Finds the part of a log's new records that can be judged: its entries are written, or never will be."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from gapless.traces.options import Options
from gapless.traces.replay.exact import named
from gapless.traces.sources.rocketmq.segments import tasks
from gapless.traces.sources.rocketmq.segments.results import SplitResult, Subject, name_of
from gapless.traces.sources.rocketmq.segments.splits import Split
from gapless.traces.sources.rocketmq.store import file_access
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import FARTHEST
from gapless.traces.sources.rocketmq.watching.live_files import LiveQueues

PATIENCE = 5.0  # seconds that an entry may lag behind those of later messages
AHEAD = 1 << 18  # bytes behind a stretch in which messages with entries are looked for
CANDIDATES = 64  # queues whose last entry is looked at to tell how far dispatch is


class Entries(Protocol):
    """The entries of a store's queues, as they come."""

    def reach(self) -> int:
        """The log position up to which entries are known; later records are not read."""

    def judged(self, store: StoreDirectory, split: Split) -> SplitResult | None:
        """Judges the stretch as far as it has entries; None if it has none. Raises Unreadable."""

    def look_again(self, queue: Subject) -> bool:
        """Looks for the files of a queue again; True if they changed."""

    def forget(self) -> None:
        """Forgets the known files, which are looked for again."""


@dataclass
class EntriesInFiles:
    """Entries in files of their queues, which a broker appends to."""

    queues: LiveQueues
    options: Options
    clock: Callable[[], float] = time.monotonic
    waiting: dict[Subject, float] = field(default_factory=dict)

    def reach(self) -> int:
        """Implements `Entries`: files do not show it."""
        return FARTHEST

    def look_again(self, queue: Subject) -> bool:
        """Implements `Entries`."""
        return self.queues.look_again(queue)

    def forget(self) -> None:
        """Implements `Entries`."""
        self.queues.known.clear()

    def judged(self, store: StoreDirectory, split: Split) -> SplitResult | None:
        """Implements `Entries`."""
        result = tasks.judge(store, split, self.options)
        if waiting := self._waiting(result):
            changed = [subject for subject in waiting if self.look_again(subject)]  # all of them are looked for
            if changed:
                result = tasks.judge(store, split, self.options)
                waiting = self._waiting(result)
            if waiting:
                return self._up_to_dispatched(store, split, result, waiting)
        return result

    def _up_to_dispatched(
        self, store: StoreDirectory, split: Split, result: SplitResult, waiting: list[Subject]
    ) -> SplitResult | None:
        """Judges the part of the stretch with entries, or all of it if the other entries will never come."""
        end = self._dispatched(store, result) - split.file.base
        if self._are_given_up(store, result, waiting, split.file.base + end):
            return result
        if not split.low < end < split.high:
            return None
        shorter = tasks.judge(store, replace(split, high=end), self.options)
        waiting = self._waiting(shorter)
        return None if waiting and not self._are_given_up(store, shorter, waiting, split.file.base + end) else shorter

    def _waiting(self, result: SplitResult) -> list[Subject]:
        """The queues that lack entries for messages at their end."""
        found = []
        for segment in result.segments:
            pieces = segment.pieces
            lacking = [at for at in pieces.waiting.tolist() if at not in pieces.refusals]
            found += [pieces.subjects[at] for at in lacking]
        for subject in list(self.waiting):
            if subject not in found and any(subject in segment.pieces.subjects for segment in result.segments):
                del self.waiting[subject]
        return found

    def _dispatched(self, store: StoreDirectory, result: SplitResult) -> int:
        """The end of the last message in the stretch that is known to have its entry; a log position."""
        reached = 0
        for segment in result.segments:
            pieces = segment.pieces
            order: list[int] = (-pieces.last).argsort()[:CANDIDATES].tolist()
            for at in order:
                number = int(pieces.indexed_ends[at])
                if number > int(pieces.numbers[at]):
                    position, size, _ = file_access.read_slot(store, *pieces.subjects[at], number - 1)
                    reached = max(reached, position + size)
        return reached

    def _dispatched_behind(self, store: StoreDirectory, split: Split) -> int:
        """The same, of the messages that follow a stretch, or 0: its last one may be one that lacks an entry."""
        following = next((file for file in store.files if file.base > split.file.base), None)
        here = Split(split.file, split.high, min(split.high + AHEAD, split.file.length), exact=True)
        there = [Split(following, 0, min(AHEAD, following.length), exact=True)] if following else []
        for ahead in (here, *there):
            if ahead.low < ahead.high and (result := tasks.judge(store, ahead, self.options)).segments:
                return self._dispatched(store, result)
        return 0

    def _are_given_up(
        self, store: StoreDirectory, result: SplitResult, waiting: list[Subject], dispatched: int
    ) -> bool:
        """True if later messages have had their entries for long: those of deleted topics never come."""
        now = self.clock()
        last = {
            subject: int(place)
            for segment in result.segments
            for subject, place in zip(segment.pieces.subjects, segment.pieces.last, strict=True)
        }
        waits = [self.waiting.setdefault(subject, now) for subject in waiting]
        if not all(now - since > PATIENCE for since in waits):
            return False
        latest = max(last[one] for one in waiting)
        return latest < dispatched or latest < self._dispatched_behind(store, result.split)


@dataclass
class NoEntries:
    """Waits for no entries: the log and its transactions are judged alone."""

    options: Options

    def reach(self) -> int:
        """Implements `Entries`."""
        return FARTHEST

    def look_again(self, queue: Subject) -> bool:  # noqa: ARG002 - as `Entries` says
        """Implements `Entries`."""
        return False

    def forget(self) -> None:
        """Implements `Entries`."""

    def judged(self, store: StoreDirectory, split: Split) -> SplitResult | None:
        """Implements `Entries`."""
        return tasks.judge(store, split, self.options)


def refusals(result: SplitResult) -> list[str]:
    """All that was refused in a split, to compare."""
    found = []
    for segment in result.segments:
        found += [repr(refusal) for refusal in segment.refused]
        pieces = segment.pieces
        found += [f"{name_of(pieces.subjects[at])} {refusal!r}" for at, refusal in sorted(pieces.refusals.items())]
        for judgement in segment.transactions:
            found += [repr(rows.tolist()) for rows in (*judgement.refused, *judgement.bad_ops)]
    return found


def subjects_refused(result: SplitResult) -> Iterator[Subject]:
    """The queues that were refused."""
    for segment in result.segments:
        yield from (segment.pieces.subjects[at] for at in segment.pieces.refusals)


def refused_last(result: SplitResult) -> int:
    """The position of the last record if it was refused, or -1."""
    if not result.segments or not result.segments[-1].refused:
        return -1
    last = result.segments[-1].last - result.split.file.wrapped
    return last if named("log", result.segments[-1].refused[-1].event)["position"] == last else -1
