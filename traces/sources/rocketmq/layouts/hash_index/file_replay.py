"""Replays the items of one file of a hash index in order: all at once, or as they are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Protocol

import numpy as np

from gapless.spec.catalog import SPECS, State
from gapless.traces.judging.building import STEPS, Events, rows
from gapless.traces.options import Options
from gapless.traces.replay.exact import Departure, Event, named, replay
from gapless.traces.replay.kernels import kernel
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.layouts.hash_index.index_files import Heads, Items
from gapless.traces.sources.rocketmq.layouts.hash_index.matching import OWNED, TIMELY, PutArguments, write_items

INDEX = STEPS["hash_index"]
REPLAYED = 1 << 15  # items that are replayed at once: their events stay near the processor

_ROWS = rows(SPECS["hash_index"], PutArguments)


class ItemReader(Protocol):
    """A file of an index whose items are numbered from 1 on, like `IndexFile`."""

    @property
    def slots(self) -> int:
        """The number of slots."""

    @property
    def items(self) -> int:
        """The exclusive end of its items."""

    @property
    def header(self) -> tuple[int, int, int, int, int, int]:
        """Begin and end in ms, first and last position, slots in use, items."""

    @property
    def began(self) -> int:
        """The expected begin time in its header."""

    @property
    def ended(self) -> int:
        """The expected end time in its header."""

    def heads(self) -> Iterator[tuple[int, Heads]]:
        """Yields the items that slots point to, in stretches with the number of the first slot. Raises Unreadable."""

    def read(self, low: int, high: int) -> Items:
        """Reads the items from number `low` to `high`. Raises Unreadable."""

    def stretches(self) -> Iterator[tuple[int, int]]:
        """Yields ranges of item numbers."""


class FileReplay:
    """The replay of one file's items.

    `items`: the exclusive end of the replayed ones · `heads`: the newest of them in each slot, and one row for the
    kernel itself · `accepted`: events · `covered`: of these, how many of each step · `refused`: the next one was
    refused · `departure`: its departure.
    """

    def __init__(self, slots: int, options: Options) -> None:
        self.options = options
        self.of = kernel("hash_index", options.ignored)
        self.items = 0  # the file itself is not found yet
        self.state = np.array([[int(getattr(self.of.spec.initial, name))] for name in self.of.spec.scalars], np.int64)
        self.newest = np.zeros((slots + 1, 1), np.int32)  # zeros that were not written take no memory
        self.accepted = 0
        self.covered = np.zeros(len(self.of.spec.actions), np.int64)
        self.refused = False
        self.departure: Departure | None = None

    def copy(self) -> FileReplay:
        """Returns an independent copy."""
        other = FileReplay(0, self.options)
        other.items, other.state, other.newest = self.items, self.state.copy(), self.newest.copy()
        other.accepted, other.covered, other.departure = self.accepted, self.covered.copy(), self.departure
        other.refused = self.refused
        return other

    def counts(self) -> dict[str, int]:
        """The number of accepted events of each step."""
        covered = zip(self.of.spec.actions, self.covered.tolist(), strict=True)
        return {name: count for name, count in covered if count}

    def replay(self, file: ItemReader, odd: Ints, upto: int) -> None:
        """Replays the items of the file up to an exclusive end. `odd`: as in `events`. Raises Unreadable."""
        for _, high, events in self.events(file, odd, self.items, upto):
            if self.refused:
                return
            self._replay(file, events)
            self.items = max(high, 1)

    def finish(self, file: ItemReader, *, clean: bool) -> None:
        """Compares the slots and the header with all items, which were replayed. Raises Unreadable."""
        for events in self.ends(file, clean=clean):
            if not self.refused:
                self._replay(file, events)

    def _replay(self, file: ItemReader, events: Events) -> None:
        replayed = self.of.replay(
            np.array([0, len(events.action)], np.int64), events.action, events.args, self.state,
            widths=np.array([file.slots], np.int64), resident=self.newest, profile=self.options.profile,
        )  # fmt: skip
        self.covered += replayed.covered
        self.state = replayed.state
        bad = int(replayed.bad_at[0])
        self.accepted += len(events.action) if bad < 0 else bad
        self.refused = bad >= 0
        if self.refused:
            self.departure = self._departure(file, events.at(bad))

    def repeat(self, file: ItemReader, odd: Ints, count: int, *, clean: bool) -> Iterator[Events]:
        """Yields the first `count` events of a file again, for an export. Raises Unreadable."""
        items = (events for *_, events in self.events(file, odd, 0, file.items))
        for events in chain(items, self.ends(file, clean=clean)):
            some = min(count, len(events.action))
            yield Events(events.spec, events.action[:some], events.args[:, :some])
            count -= some

    # -- events --------------------------------------------------------------------------------------------------------

    def events(self, file: ItemReader, odd: Ints, begin: int, upto: int) -> Iterator[tuple[int, int, Events]]:
        """Yields the items from `begin` on, in stretches with their range; the first event finds the file.

        `odd`: [2, items], items that are not owned, or not timely, rising, and their bits.
        """
        if begin == 0 and upto <= 1:
            yield 1, 1, self._items(file, odd, 1, 1, found=True)
        for low in range(max(begin, 1), upto, REPLAYED):
            high = min(low + REPLAYED, upto)
            yield low, high, self._items(file, odd, low, high, found=begin == 0 and low == 1)

    def _items(self, file: ItemReader, odd: Ints, low: int, high: int, *, found: bool) -> Events:
        """Yields the items from number `low` to `high`."""
        begin = int(found)
        events = Events.room(SPECS["hash_index"], begin + high - low)
        if begin:
            events.put(0, INDEX.open(slots=file.slots))
        events.action[begin:] = events.spec.codes["put"]
        write_items(file.read(low, high).view(np.uint8), file.slots, events.args, begin, _ROWS)
        mine = odd[:, (odd[0] >= low) & (odd[0] < high)]
        events.column("owned")[mine[0] - low + begin] = mine[1] & OWNED != 0
        events.column("timely")[mine[0] - low + begin] = mine[1] & TIMELY != 0
        return events

    def ends(self, file: ItemReader, *, clean: bool) -> Iterator[Events]:
        """Yields the slots of a file and then its header, after its items. Raises Unreadable."""
        used, codes = 0, SPECS["hash_index"].codes
        for low, stored in file.heads():
            heads = self.newest[low : low + len(stored), 0]
            used += int(np.count_nonzero(heads))
            if not clean:  # the broker was killed in the middle of a step: the item is there, and not counted
                stored[stored == file.items] = heads[stored == file.items]
            (slots,) = np.nonzero((stored | heads) != 0)  # of truths a quarter of the time
            events = Events.room(SPECS["hash_index"], len(slots))
            events.action[:] = codes["find_slot"]
            events.column("slot")[:] = low + slots
            events.column("head")[:] = stored[slots]
            yield events
        yield Events.of(SPECS["hash_index"], [self._header(file, used, clean=clean)])

    def _header(self, file: ItemReader, used: int, *, clean: bool) -> Event:
        """Returns the event of the header; after a kill, as the broker's last step would have left it."""
        begin, end, first, last, counted, items = file.header
        if file.items == 1:  # a file that was begun, and holds nothing yet: its header tells of the file before it
            first, last, begin, end = 0, 0, file.began, file.ended
        elif not clean:
            counted = used if counted == used + 1 else counted
        timely = begin == file.began and end == file.ended
        return INDEX.find_header(used=counted, items=max(items, 1), first=first, last=last, timely=timely)

    # -- what is wrong -------------------------------------------------------------------------------------------------

    def _departure(self, file: ItemReader, event: Event) -> Departure | None:
        """Returns the departure from exact replay of the event, with the item that it points to."""
        spec = SPECS["hash_index"]
        reached = dict(zip(spec.scalars, self.state[:, 0].tolist(), strict=True))
        slot = named(spec, event).get("slot", 0)
        head = newest_item(file, slot, reached["items"])
        before: State = replace(spec.initial, **reached)
        before = replace(before, heads=before.heads.set(slot, head) if head else before.heads)
        outcome = replay("hash_index", before, [event], profile=self.options.profile, ignored=self.options.ignored)
        return outcome.departure


def newest_item(file: ItemReader, slot: int, below: int) -> int:
    """Returns the newest item of a slot below a number; 0 without one. Raises Unreadable."""
    for low, high in reversed(list(file.stretches())):
        if low < below:
            hashes = file.read(low, min(high, below))["hash"].astype(np.int64)
            (mine,) = np.nonzero(hashes % file.slots == slot)
            if len(mine):
                return low + int(mine[-1])
    return 0
