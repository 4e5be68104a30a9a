"""The hash index of a store, held against the log: the items of every file, its slots, its header, and all keys.

Workers say which items are those of their records and which keys no item has (`segments/index_keys.py`). Here the items
of each file are taken in their order, and what is missing is weighed: brokers lose parts of their index lawfully.

* An unclean start deletes every file that ends behind the checkpoint's index time, and indexes anew only what it
  dispatches again. So an index has gaps between files, once a broker was killed.
* Nothing is indexed while `messageIndexEnable` is off.
* A log that is cut off, after a power loss, leaves items that point beyond its end, or at what came after.

Source: docs/rocketmq.md#index.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np

from gapless.spec.catalog import SPECS, State
from gapless.traces.judging.building import STEPS, Events
from gapless.traces.options import Options
from gapless.traces.replay.exact import Departure, Event, named, replay
from gapless.traces.replay.kernels import Cells, Kernel, kernel
from gapless.traces.sources.rocketmq.joining.judged import SAY_SO, JudgedStore, Later
from gapless.traces.sources.rocketmq.segments.index_keys import FIRST, KEYS, LAST, RECORDS, Indexed
from gapless.traces.sources.rocketmq.segments.matching import OWNED, TIMELY
from gapless.traces.sources.rocketmq.segments.tasks import Segment
from gapless.traces.sources.rocketmq.store.bytes import Ints
from gapless.traces.sources.rocketmq.store.files import FARTHEST
from gapless.traces.sources.rocketmq.store.index_files import FOLDER, IndexFile
from gapless.traces.sources.rocketmq.store.lookup import distinct
from gapless.traces.sources.rocketmq.store.wanted import wants_index

INDEX = STEPS["hash_index"]
REPLAYED = 1 << 20  # items that are replayed at once: what the slots hold is copied each time
SWITCHES = ("messageIndexEnable", "indexFileWriteEnable")  # settings without which no record is indexed


class HashIndex:
    """The hash index of one store."""

    def __init__(self, judged: JudgedStore, options: Options) -> None:
        self.judged = judged
        self.store = judged.store
        self.options = options
        self.parts: list[Indexed] = []

    def take(self, segment: Segment) -> None:
        """Remember what one segment's worker found."""
        if segment.indexed is not None:
            self.parts.append(segment.indexed)

    def finish(self) -> None:
        """The log's end is known: judge every file, and every key."""
        if self.store.index is None or not wants_index(self.store, self.options):
            return
        for at, file in enumerate(self.store.index.files):
            self._judge(file, self._odd_items(at, file))
        if self.store.index.whole:
            self._look_up()

    # -- items, slots and header of a file ---------------------------------------------------------------------------

    def _odd_items(self, at: int, file: IndexFile) -> Ints:
        """Items of one file that are not those of a record, as [item, bits]; those beyond the log's end among them."""
        odd = [part.odd[1:][:, part.odd[0] == at] for part in self.parts]
        found = np.concatenate([np.zeros((3, 0), np.int64), *odd], axis=1)[[0, 2]]
        if self.store.limit == FARTHEST and len(file.highs) and file.highs.max() >= self.judged.end:
            found = np.concatenate([found, *self._beyond(file)], axis=1)
        return found[:, np.argsort(found[0], kind="stable")]

    def _beyond(self, file: IndexFile) -> Iterator[Ints]:
        for stretch, (low, high) in enumerate(file.stretches()):
            if file.highs[stretch] >= self.judged.end:
                (beyond,) = np.nonzero(file.read(low, high)["position"].astype(np.int64) >= self.judged.end)
                yield np.stack([low + beyond, np.full(len(beyond), TIMELY, np.int64)])

    def _judge(self, file: IndexFile, odd: Ints) -> None:
        """One file."""
        lost = odd[0][odd[1] & OWNED == 0]
        tail = file.items - len(lost)
        at_the_tail = len(lost) > 0 and lost[0] == tail
        if at_the_tail and self.store.copied and self._point_beyond(file, tail):
            self.judged.note(f"the last {len(lost):,} items of {file.name} were copied after the log")
            odd = odd[:, odd[0] < tail]
        elif at_the_tail and not self.store.first_life:
            self.judged.doubt(
                f"the last {len(lost):,} items of {file.name} point at no record that has their key: legal after a "
                "power loss, for the log was cut off where they point, and in a copy of a running broker "
                f"({SAY_SO}); damage otherwise"
            )
            odd = odd[:, odd[0] < tail]
        departure, accepted, heads = self._replayed(file, odd)
        doubted = departure is not None and self._is_deleted_next(file)
        if self.judged.exported:
            count = accepted + (departure is not None and not doubted)
            self.judged.later.append(Later("hash_index", file.name, partial(self._told_of, file, odd, heads, count)))
        if departure is None:
            return
        if doubted and self.store.copied and departure.event[0] in ("find_slot", "find_header"):
            self.judged.note(f"{file.name} was copied while the broker wrote it ({departure.because}: not so)")
            return
        if doubted:
            self.judged.doubt(
                f"{file.name} is not whole ({departure.because}: not so): legal after a power loss, for the broker "
                f"deletes the file at its next start, and in a copy of a running broker ({SAY_SO}); damage otherwise"
            )
            return
        self.judged.find(file.name, max(int(departure.state.last), self.store.start), departure)

    def _point_beyond(self, file: IndexFile, tail: int) -> bool:
        """Whether all items from one on point beyond the log's end."""
        positions = file.read(tail, file.items)["position"].astype(np.int64)
        return bool((positions >= self.judged.end).all())

    def _is_deleted_next(self, file: IndexFile) -> bool:
        """Whether the broker's next start deletes the file, for it stopped in the middle of it."""
        known = self.store.checkpoint
        return not self.store.clean and (known is None or file.header[1] > known.index)

    def _told_of(self, file: IndexFile, odd: Ints, heads: Ints, count: int) -> Iterator[Events]:
        """The first events of a file again, to be written: its slots by their numbers in the table."""
        used = _used(file)
        for events in chain(self._events(file, used, odd), [self._ends(file, used, heads)]):
            some = min(count, len(events.action))
            kept = Events(events.spec, events.action[:some], events.args[:, :some])
            codes = events.spec.codes
            (of_slots,) = np.nonzero((kept.action == codes["put"]) | (kept.action == codes["find_slot"]))
            kept.column("slot")[of_slots] = used[kept.column("slot")[of_slots]]
            yield kept
            count -= some

    def _replayed(self, file: IndexFile, odd: Ints) -> tuple[Departure | None, int, Ints]:
        """What is wrong with a file first, if anything is; how many events come before it; the newest item of slots."""
        of, used = kernel("hash_index", self.options.ignored), _used(file)
        state = np.array([[int(getattr(of.spec.initial, name))] for name in of.spec.scalars], np.int64)
        cells: Cells | None = None
        accepted = 0
        for events in self._events(file, used, odd):
            replayed = of.replay(
                np.array([0, len(events.action)], np.int64), events.action, events.args, state, cells=cells,
                origins=np.zeros(1, np.int64), widths=np.array([len(used)], np.int64), going_on=True,
                profile=self.options.profile,
            )  # fmt: skip
            self.judged.cover("hash_index", _counts(of, replayed.covered))
            state = replayed.state
            if replayed.bad_at[0] >= 0:
                bad = int(replayed.bad_at[0])
                return self._told(file, used, state, events, bad), accepted + bad, np.zeros(len(used), np.int64)
            accepted += len(events.action)
            cells = replayed.cells
        heads = cells.values[0] if cells is not None else np.zeros(len(used), np.int64)
        events = self._ends(file, used, heads)
        replayed = of.replay(
            np.array([0, len(events.action)], np.int64), events.action, events.args, state, cells=cells,
            origins=np.zeros(1, np.int64), widths=np.array([len(used)], np.int64), profile=self.options.profile,
        )  # fmt: skip
        self.judged.cover("hash_index", _counts(of, replayed.covered))
        bad = int(replayed.bad_at[0])
        if bad >= 0:
            return self._told(file, used, replayed.state, events, bad), accepted + bad, heads
        return None, accepted + len(events.action), heads

    def _events(self, file: IndexFile, used: Ints, odd: Ints) -> Iterator[Events]:
        """The file is found, and its items, in stretches: the first of them with the step that finds it."""
        for low, high in list(file.stretches(REPLAYED)) or [(1, 1)]:
            yield self._items(file, used, odd, low, high)

    def _items(self, file: IndexFile, used: Ints, odd: Ints, low: int, high: int) -> Events:
        """The items from number `low` to `high`; slots are numbered as in `used`."""
        begin = int(low == 1)
        items, events = file.read(low, high), Events.room(SPECS["hash_index"], begin + high - low)
        if begin:
            events.put(0, INDEX.open(slots=file.slots))
        events.action[begin:] = events.spec.codes["put"]
        hashes = items["hash"].astype(np.int64)
        slots = hashes % file.slots
        events.column("slot")[begin:] = slots if len(used) == file.slots else np.searchsorted(used, slots)
        events.column("previous")[begin:] = items["previous"]
        events.column("position")[begin:] = items["position"]
        events.column("owned")[begin:] = hashes >= 0
        events.column("timely")[begin:] = 1
        mine = odd[:, (odd[0] >= low) & (odd[0] < high)]
        events.column("owned")[mine[0] - low + begin] = mine[1] & OWNED != 0
        events.column("timely")[mine[0] - low + begin] = mine[1] & TIMELY != 0
        return events

    def _ends(self, file: IndexFile, used: Ints, heads: Ints) -> Events:
        """The slots and the header of a file, once its items are read."""
        told = file.heads() if len(used) == file.slots else file.heads()[used]
        if not self.store.clean:  # the broker was killed in the middle of a step: the item is there, and not counted
            told[told == file.items] = heads[told == file.items]
        (slots,) = np.nonzero((told != 0) | (heads != 0))
        events = Events.room(SPECS["hash_index"], len(slots) + 1)
        events.action[:] = events.spec.codes["find_slot"]
        events.column("slot")[:-1] = slots
        events.column("head")[:-1] = told[slots]
        events.put(len(slots), self._header(file, int(np.count_nonzero(heads))))
        return events

    def _header(self, file: IndexFile, used: int) -> Event:
        """What the header says; of a broker that was killed, as it would be after its last step."""
        begin, end, first, last, said, items = file.header
        if file.items == 1:  # a file that was begun, and holds nothing yet: its header tells of the file before it
            first, last, begin, end = 0, 0, file.began, file.ended
        elif not self.store.clean:
            said = used if said == used + 1 else said
        timely = begin == file.began and end == file.ended
        return INDEX.find_header(used=said, items=max(items, 1), first=first, last=last, timely=timely)

    def _told(self, file: IndexFile, used: Ints, state: Ints, events: Events, bad: int) -> Departure | None:
        """The departure, replayed by the plain functions from the state before it, with the item that it leads to."""
        spec, event = SPECS["hash_index"], events.at(bad)
        reached = dict(zip(spec.scalars, state[:, 0].tolist(), strict=True))
        slot = int(used[events.column("slot")[bad]]) if len(used) else 0
        if "slot" in named(spec, event):
            event = getattr(INDEX, event[0])(**named(spec, event) | {"slot": slot})
        head = self._head(file, slot, reached["items"])
        before: State = replace(spec.initial, **reached)
        before = replace(before, heads=before.heads.set(slot, head) if head else before.heads)
        outcome = replay("hash_index", before, [event], profile=self.options.profile, ignored=self.options.ignored)
        return outcome.departure

    def _head(self, file: IndexFile, slot: int, below: int) -> int:
        """The newest item of a slot among those below a number."""
        for low, high in reversed(list(file.stretches())):
            if low < below:
                hashes = file.read(low, min(high, below))["hash"].astype(np.int64)
                (mine,) = np.nonzero(hashes % file.slots == slot)
                if len(mine):
                    return low + int(mine[-1])
        return 0

    # -- keys --------------------------------------------------------------------------------------------------------

    def _look_up(self) -> None:
        """Every key of every record: found, lawfully lost, or missing."""
        self.judged.cover("hash_index", {"look_up": sum(part.found for part in self.parts)})
        lost = np.zeros(2, np.int64)
        for part in self.parts:
            for run in part.runs.T:
                first, last = int(run[FIRST]), int(run[LAST])
                if self._is_consequence(first, last):
                    continue
                why = self._why_lost(first, last)
                if why is None:
                    what = f"{run[RECORDS]:,} records with {run[KEYS]:,} keys up to {last} are without an item"
                    self._missing(first, what)
                elif why:
                    self.judged.doubt(why)
                else:
                    lost += run[[RECORDS, KEYS]]
            for position in part.partly.tolist():
                if not self._is_consequence(position, position) and not self._is_cut_short(position):
                    self._missing(position, "the record has other keys that have their items")
        if lost[0]:
            self.judged.note(f"{lost[0]:,} records are not in the hash index: {self._lawful}")

    @property
    def _lawful(self) -> str:
        if not self.enabled:
            return "messageIndexEnable is off"
        return "a broker that was killed loses a part of it, and does not make it anew (docs/rocketmq.md#index)"

    @property
    def enabled(self) -> bool:
        """Whether the settings, if there are any, have the broker write an index."""
        off = (self.store.settings.get(name, "").strip().lower() == "false" for name in SWITCHES)
        return not any(off)

    @property
    def promised(self) -> bool:
        """Whether all records must be in the index: it was on from the first record on, and nothing was lost."""
        return self.enabled and self.store.clean and bool(self.store.settings) and self.store.settings_held

    def _spans(self) -> list[tuple[int, int, IndexFile]]:
        """From where to where the files reach in the log."""
        files = self.store.index.files if self.store.index else ()
        return [(int(file.lows[0]), int(file.highs[-1]), file) for file in files if len(file.lows)]

    def _is_consequence(self, first: int, last: int) -> bool:
        """Whether records lie where a file departs already, or where what is known of the log ends."""
        broken = {found.trace for found in self.judged.breaches if found.action in ("put", "find_slot", "find_header")}
        if first >= self.judged.end or self.store.limit != FARTHEST:
            return True
        return any(low <= last and first <= high and file.name in broken for low, high, file in self._spans())

    def _why_lost(self, first: int, last: int) -> str | None:
        """Why no key of these records is found: a doubt; nothing where that is lawful; None where it is not."""
        spans = self._spans()
        behind = all(high < first for _, high, _ in spans)
        if not self.enabled or (behind and not self.store.clean):
            return ""
        if self.promised:
            return None
        inside = any(low < first and last < high for low, high, _ in spans)
        if not inside and not behind and not self.store.first_life:
            return ""
        return (
            f"records from {first:,} on are not in the hash index, and others are: legal if messageIndexEnable was "
            "off for a time, damage otherwise"
        )

    def _is_cut_short(self, position: int) -> bool:
        """Whether the other keys of a record went into a file that a start deleted, or were not written yet."""
        spans = self._spans()
        if not self.store.first_life and any(position in (low, high) for low, high, _ in spans):
            return True
        if self.store.clean:
            return False
        last = max(high for _, high, _ in spans)
        return position >= last or any(
            low <= position <= high and self._is_deleted_next(file) for low, high, file in spans
        )

    def _missing(self, position: int, detail: str) -> None:
        """A key of the record at a position is not found."""
        files = [file for low, _, file in self._spans() if low <= position] or [file for *_, file in self._spans()]
        spec = SPECS["hash_index"]
        slots, items, name = (files[-1].slots, files[-1].items, files[-1].name) if files else (1, 1, f"{FOLDER}/")
        before: State = replace(spec.initial, slots=slots, items=items)
        event = INDEX.look_up(position=position, found=0)
        outcome = replay("hash_index", before, [event], profile=self.options.profile, ignored=self.options.ignored)
        self.judged.joint(self.judged.end, "hash_index", f"{name}/{position}", [INDEX.open(slots=slots), event])
        if outcome.departure:
            self.judged.tell(name, position, outcome.departure, detail)


def _used(file: IndexFile) -> Ints:
    """The slots that items or the table use, rising; all of them where that is no small part."""
    if file.items * 8 > file.slots:
        return np.arange(file.slots, dtype=np.int64)
    slots = [file.read(low, high)["hash"].astype(np.int64) % file.slots for low, high in file.stretches()]
    return distinct(np.concatenate([np.flatnonzero(file.heads()), *slots]))


def _counts(of: Kernel, covered: Ints) -> dict[str, int]:
    return {name: int(count) for name, count in zip(of.spec.actions, covered, strict=True) if count}
