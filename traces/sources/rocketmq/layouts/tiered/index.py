"""The index of tiered storage, compared with the queues there: items lead to their messages, slots to all items.

Its items are those of the hash index, and so are their rules, except that they have no order: the logs of several
queues have none, so each item counts as lying at 0. It is not promised that a key is found.

A departure accuses only if nothing else can be its cause. A file that is being written is not flushed, so a power loss
may take any page of it; a kill may separate an item from its slot; and the next life seals such remains. A queue or
topic that was created again leaves items of its earlier life.

Source: docs/rocketmq-tiered.md#index.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np

from gapless.traces.options import Options
from gapless.traces.replay.exact import Departure
from gapless.traces.report.wording import plural
from gapless.traces.sources.rocketmq.blame.situation import switch
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.joining.findings import DeferredTrace, StoreFindings
from gapless.traces.sources.rocketmq.layouts.hash_index.coverage import by_item
from gapless.traces.sources.rocketmq.layouts.hash_index.file_replay import FileReplay
from gapless.traces.sources.rocketmq.layouts.hash_index.index_files import Items
from gapless.traces.sources.rocketmq.layouts.hash_index.matching import OWNED, TIMELY
from gapless.traces.sources.rocketmq.layouts.tiered import blame as situations
from gapless.traces.sources.rocketmq.layouts.tiered.files import TieredQueue, TieredStorage
from gapless.traces.sources.rocketmq.layouts.tiered.index_files import TieredIndexFile, opened_index
from gapless.traces.sources.rocketmq.layouts.tiered.indexed_messages import odd_items
from gapless.traces.sources.rocketmq.segments.results import name_of
from gapless.traces.sources.rocketmq.store.files import Queue

AT_ONCE = 1 << 18  # items whose messages are looked for at once
LEAST = -(2**31)  # a hash that has no positive one: the slot of its key lies before the first


def includes_tiered_index(options: Options, name: str) -> bool:
    """True if a file of the index of tiered storage was selected: it belongs to no topic."""
    return options.topic is None and options.trace in (None, name)


class TieredIndexJudge:
    """Judges the index of a tiered storage whose queues were judged.

    `found`: items that lead to a message with their key · `passed`: others that accuse no broker.
    """

    def __init__(self, judged: StoreFindings, options: Options, storage: TieredStorage) -> None:
        self.judged = judged
        self.store = judged.store
        self.options = options
        self.storage = storage
        self.queues = {one.queue: one for one in storage.queues}
        self.broken = {found.trace for found in judged.breaches if found.spec == "tiered"}
        self.found = 0
        self.passed = Counter[str]()

    def judge(self) -> None:
        """Judges every file of the index."""
        files, unread = opened_index(self.judged)
        for one in unread:
            what = "a file of the index of tiered storage is not judged"
            self.judged.blame(situations.UNREAD, switch(on=one.lost), what=what, why=one.why)
        files = [file for file in files if includes_tiered_index(self.options, file.name)]
        for file in files:
            self._judge(file)
        self.judged.tiered_index += [file.name for file in files]
        if self.found:
            self.judged.note(
                f"{plural(self.found, 'item')} in {plural(len(files), 'file')} of the index of tiered storage, each of "
                "which leads to a message with its key"
            )
        for why, count in sorted(self.passed.items()):
            self.judged.note(f"not judged of the index of tiered storage: {plural(count, 'item')}; {why}")

    def _judge(self, file: TieredIndexFile) -> None:
        odd = self._odd(file)
        clean = file.sealed or self.store.clean
        replayed = FileReplay(file.slots, self.options)
        replayed.replay(file, odd, file.items)
        replayed.finish(file, clean=clean)
        self.judged.cover("hash_index", replayed.counts())
        departure = replayed.departure
        situation = situations.LEAST_HASH if _is_put_of_the_least(file, departure) else situations.INDEX_NOT_WHOLE
        sealed = switch(on=file.sealed)
        accused = departure is not None and self.judged.accuses(situation, sealed)
        if self.judged.exported:
            events = partial(replayed.repeat, file, odd, replayed.accepted + accused, clean=clean)
            self.judged.later.append(DeferredTrace("hash_index", file.name, events))
        if departure is not None and accused:
            self.judged.find(file.name, self.store.start, departure, self._leads_to(file, departure))
        elif departure is not None:
            self.judged.blame(situation, sealed, file=file.file, because=departure.because)

    def _leads_to(self, file: TieredIndexFile, departure: Departure) -> str:
        """Returns the position to which the departing item leads; an empty text without one."""
        if not _is_put(departure):
            return ""
        number = int(departure.state.items)
        (item,) = file.fields(number, number + 1).tolist()
        _hash, topic, queue, position, size, *_ = item
        name = self.storage.topics.get(topic, f"topic {topic}")
        return f"{size:,} bytes at {position:,} of the tiered log of {name_of((name, queue))}"

    def _odd(self, file: TieredIndexFile) -> Ints:
        """Returns the items of one file that should match a message and do not, as [item, bits]."""
        found = [np.zeros((2, 0), np.int64)]
        for low, high in file.stretches(AT_ONCE):
            items = file.fields(low, high)
            of = items["topic"].astype(np.int64) << 32 | items["queue"].astype(np.int64) & 0xFFFFFFFF
            order = np.argsort(of, kind="stable")
            for mine in np.split(order, np.flatnonzero(np.diff(of[order])) + 1):
                topic, queue = (int(items[field][mine[0]]) for field in ("topic", "queue"))
                name = self.storage.topics.get(topic)
                odd = self._of_queue(file, items[mine], (name, queue) if name is not None else None)
                found.append(np.stack([low + mine[odd[0]], odd[1]]))
        return by_item(np.concatenate(found, axis=1))

    def _of_queue(self, file: TieredIndexFile, items: Items, queue: Queue | None) -> Ints:
        """Returns the same for items of one queue, as [place among these, bits]."""
        tiered = self.queues.get(queue) if queue is not None else None
        nothing = np.zeros((2, 0), np.int64)
        if queue is None or tiered is None or not tiered.log:
            self.passed["their topic or queue is gone"] += len(items)
            return nothing
        if name_of(queue) in self.broken:
            self.passed["their queue departs"] += len(items)
            return nothing
        positions = items["position"].astype(np.int64)
        (there,) = np.nonzero(~_has_expired(tiered, positions))
        if len(there) < len(items):
            self.passed["their messages have expired"] += len(items) - len(there)
        bits = odd_items(queue, [one.opened for one in tiered.log if one.length > 0], items[there], file.began)
        (odd,) = np.nonzero(bits != OWNED | TIMELY)
        self.found += len(there) - len(odd)
        again = switch(on=_is_of_one_life(tiered))
        if len(odd) and not self.judged.accuses(situations.LEADS_NOWHERE, again):
            self.passed[f"{name_of(queue)} may have been created again behind them"] += len(odd)
            self.judged.blame(situations.LEADS_NOWHERE, again, queue=name_of(queue), count=len(odd))
            return nothing
        return np.stack([there[odd], bits[odd].astype(np.int64)])


def _is_put(departure: Departure) -> bool:
    return departure.event[0] == "put"


def _is_put_of_the_least(file: TieredIndexFile, departure: Departure | None) -> bool:
    """True if a departure is at an item whose hash has no slot."""
    if departure is None or not _is_put(departure):
        return False
    items = file.fields(int(departure.state.items), int(departure.state.items) + 1)
    return len(items) > 0 and int(items["hash"][0]) == LEAST


def _has_expired(tiered: TieredQueue, positions: Ints) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Returns the mask of positions below the log's start, or in a file that lacks committed bytes."""
    gone = (positions >= 0) & (positions < tiered.log[0].base)
    for file in tiered.log:
        if file.length < file.committed:
            gone |= (positions >= file.base) & (positions < file.end)
    return gone


def _is_of_one_life(tiered: TieredQueue) -> bool:
    """True if the queue was never created again: it begins with its first message, which then would have expired."""
    return tiered.log[0].base == 0 and len(tiered.entries) > 0 and tiered.entries[0].base == 0
