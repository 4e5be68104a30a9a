"""Reading: the messages of a queue by number, one or many, as objects or as columns, and by tag, key and time.

What a number stands for is what its entry points at: a whole record that is that queue's of that number, with the
checksums that it carries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from operator import index

import numpy as np

from gapless.impl.dispatch.queue_table import read_only
from gapless.impl.files.log import CommitLog
from gapless.impl.files.queues import ENTRY, ConsumeQueue, ConsumeQueues
from gapless.impl.records import kernels, read_kernel
from gapless.impl.records.columns import MessageColumns
from gapless.impl.records.errors import Damaged, Refused, Stopped, StoreError
from gapless.impl.records.record import ENTRY_BYTES, Bytes, Ints, Record, tag_code
from gapless.native.intrinsics import PAYLOAD

FEW = 4  # so many are read one by one sooner than in a native pass
AT_ONCE = 1 << 14  # messages of one pass, at most: memory is asked for in pieces
FOLLOWED = 1000  # messages of a queue, before the next queue has its turn
FILES = 8  # of the log that are kept at hand for reading single messages

_new = tuple.__new__

Window = tuple[ConsumeQueue | None, int, int, int, int, tuple[object, ...]]
"""Entries at hand: of which queue, its restarts by then, the lowest and the exclusive end of their numbers,
where the facts lie that `read_kernel.read_one` gets, and what is to live as long."""
Files = tuple[int, int, tuple[object, ...]]
"""Log files at hand: where facts about them lie, of how many, and what is to live as long."""


class ReadCalls:
    """Calls that read a store. A subclass calls `_begin_reading` once there are files."""

    _closing: bool  # nothing is read any more

    def _begin_reading(self, log: CommitLog, queues: ConsumeQueues) -> None:
        self._log, self._all_queues = log, queues
        self._met: dict[tuple[str, int], ConsumeQueue] = {}
        self._forget_files()

    def _forget_files(self) -> None:
        """Release all files, so that a deleted one gives its room back."""
        self._files: dict[int, Bytes] = {}  # by their first position
        self._at_hand: Files = (0, 0, ())
        self._window: Window = (None, 0, 0, 0, 0, ())

    def _require_open(self) -> None:
        """Raises Stopped where nothing can be read any more."""
        raise NotImplementedError

    def _require_own(self) -> None:
        """Raises Stopped in a forked child that cannot read."""

    # -- by number ---------------------------------------------------------------------------------------------------

    def range(self, topic: str, queue: int) -> tuple[int, int]:
        """The lowest number that is kept, and the exclusive end of those that can be read: the commit position.

        After `close`, what they were. Raises Stopped in a forked child.
        """
        found = self._all_queues.known(topic, queue)
        return (found.first, found.committed) if found else (0, 0)

    def get(self, topic: str, queue: int, number: int) -> Record:
        """One message. Raises as `read` does, and Refused where consumers see none of that number yet."""
        if number.__class__ is not int:
            number = int(index(number))  # or a kernel would be made for another type
        found = self._met.get((topic, queue))
        if found is None or self._closing or not found.first <= number < found.committed:
            return self._one(topic, queue, number)
        of, restarts, low, high, facts, _alive = self._window
        if of is not found or not low <= number < high or restarts != found.restarts:
            try:
                facts, _alive = self._look_at(found, number)
            except StoreError:  # it may have expired meanwhile
                return self._one(topic, queue, number)
        files, count, _files = self._at_hand
        fields = read_kernel.read_one(facts, files, count, number)
        if fields[1] < 0:
            return self._one(topic, queue, number)
        record: Record = _new(Record, fields)
        return record

    def _one(self, topic: str, queue: int, number: int) -> Record:
        """Read a message as `get` does, whatever its record looks like; the next one is found sooner."""
        some = self._read(topic, queue, number, number + 1)
        if not some:
            raise Refused(f"{topic}/{queue}: consumers see no number {number} yet; use `wait_for`")
        record = some[0]
        found = self._met[topic, queue] = self._all_queues.named(topic, queue)
        with suppress(StoreError):  # the message was read, and its files may have expired meanwhile
            self._keep_file(record.position)
            self._look_at(found, number)
        return record

    def _keep_file(self, position: int) -> None:
        """The log file that has a position is at hand."""
        data, base = self._log.view(position)
        if base not in self._files:
            kept = {base: data, **(self._files if len(self._files) < FILES else {})}
            facts = np.array([(base, base + len(data), data.ctypes.data) for base, data in kept.items()], np.int64)
            self._files, self._at_hand = kept, (facts.ctypes.data, len(kept), (facts, kept))

    def _look_at(self, queue: ConsumeQueue, number: int) -> tuple[int, tuple[object, ...]]:
        """Entries are at hand, that of `number` among them: where the facts lie, and what is to live as long."""
        low = number // queue.per_file * queue.per_file
        restarts, prefix, slots = queue.restarts, queue.prefix, queue.slots(low, low + queue.per_file)
        facts = np.array(
            [id(prefix) + PAYLOAD, len(prefix), queue.id, self._log.sealed, low, slots.ctypes.data], np.int64
        )
        at, alive = facts.ctypes.data, (facts, prefix, slots)
        self._window = (queue, restarts, low, low + len(slots), at, alive)
        return at, alive

    def read(self, topic: str, queue: int, number: int, count: int = 32) -> list[Record]:
        """The messages of a queue from `number` on, at most `count`; none where consumers see none yet.

        Raises Refused where `number` is not in the queue, below its first or beyond its end, or expires meanwhile;
        Damaged where a message is not what it was.
        """
        if count == 1 and (found := self._met.get((topic, queue))) and found.first <= number < found.committed:
            return [self.get(topic, queue, number)]
        return self._read(topic, queue, number, number + count)

    def _read(self, topic: str, queue: int, number: int, end: int) -> list[Record]:
        if end - number > FEW:
            return self.read_batch(topic, queue, number, end - number).records()
        found, high = self._require_range(topic, queue, number)
        if found is None:
            return []
        start = self._log.start
        try:
            entries = found.entries(number, min(end, high))["position"].tolist()
            return [self._message(found, k, position) for k, position in enumerate(entries, number)]
        except StoreError as error:
            self._raise_expired(found, number, start, error)
            raise

    def read_batch(self, topic: str, queue: int, number: int, count: int = 1000, *, tag: str = "") -> MessageColumns:
        """The same messages as columns; with a tag, those among them that have it. Raises as `read` does."""
        return self._batch(topic, queue, number, count, tag)[0]

    def _batch(self, topic: str, queue: int, number: int, count: int, tag: str = "") -> tuple[MessageColumns, int]:
        """The messages of `read_batch`, and the number to read next: messages without the tag are passed."""
        found, high = self._require_range(topic, queue, number)
        if found is None:
            return MessageColumns.joined([]), number
        start, parts, low, end = self._log.start, [], number, min(high, number + count)
        try:
            while low < end:
                part, low = self._part(found, low, end, tag)
                parts.append(part)
        except StoreError as error:
            self._raise_expired(found, number, start, error)
            raise
        return MessageColumns.joined(parts), low

    def _require_range(self, topic: str, queue: int, number: int) -> tuple[ConsumeQueue | None, int]:
        """The queue, and where what can be read ends; no queue where that is at `number`. Raises Refused, Stopped."""
        self._require_open()
        low, high = self.range(topic, queue)
        if not low <= number <= high:
            raise Refused(f"{topic}/{queue}: number {number}, expected one from {low} to {high}; ask for `range`")
        return self._all_queues.known(topic, queue) if number < high else None, high

    def _raise_expired(self, queue: ConsumeQueue, number: int, start: int, error: StoreError) -> None:
        """Raises Refused where what could not be read has expired since the log began at `start`."""
        if self._log.start != start or number < queue.first:
            raise Refused(f"{queue.name}: number {number} has expired meanwhile; ask for `range`") from error

    def _part(self, queue: ConsumeQueue, low: int, high: int, tag: str) -> tuple[MessageColumns, int]:
        """The messages from `low` on that lie in one log file and have a tag, if one is named; and where they end."""
        high = min(high, (low // queue.per_file + 1) * queue.per_file, low + AT_ONCE)
        slots = queue.slots(low, high)
        numbers: Ints = np.arange(low, high)
        if tag:
            which = np.flatnonzero(slots.view(ENTRY).reshape(-1)["tag"] == tag_code(tag))
            slots, numbers = slots[which], numbers[which]
            if not len(slots):
                return MessageColumns.joined([]), high
        position = int.from_bytes(slots[0, :8].tobytes(), "big", signed=True)
        if not self._log.start <= position < self._log.end:
            self._message(queue, int(numbers[0]), position)
        data, base = self._log.view(position)
        end = min(len(data), self._log.end - base)
        size, count = read_kernel.extent(read_only(slots), base, end)
        rows = np.empty((read_kernel.ROWS, count + 1), np.int64)
        rows[:, 0] = 0
        rows[read_kernel.NUMBER, :count] = numbers[:count]
        bodies, rests, tags = (np.empty(room, np.uint8) for room in (size, size, size + count))
        done = read_kernel.gather(
            read_only(data[:end]), base, read_only(slots[:count]), queue.id, np.frombuffer(queue.prefix, np.uint8),
            queue.is_light, self._log.sealed, kernels.CRC_TABLES, rows, bodies, rests, tags,
        )  # fmt: skip
        if not done:
            self._message(queue, int(numbers[0]), position)
            raise Damaged(f"{self._place(queue, int(numbers[0]), position)}, where no whole record lies")
        found = MessageColumns.of(rows, bodies, rests, tags, done)
        if tag:
            found = found.where(np.array([each == tag for each in found.tags], bool))
        return found, high if done == len(numbers) else int(numbers[done])

    def _message(self, queue: ConsumeQueue, number: int, position: int) -> Record:
        """The message to which entry `number` points. Raises Damaged where it is another, or none."""
        place = self._place(queue, number, position)
        try:
            found = self._log.at(position)
        except Refused as error:
            if position < self._log.start:
                raise Refused(f"{queue.name}: number {number} has expired meanwhile; ask for `range`") from error
            raise Damaged(f"{place}, where no record begins; open the store with rebuild=True") from error
        if (found.topic, found.queue, found.number) != (queue.topic, queue.id, number) and not queue.is_light:
            raise Damaged(
                f"{place}, where message {found.number} of {found.topic}/{found.queue} lies; open the store with "
                "rebuild=True"
            )
        return found if not queue.is_light else found._replace(number=number)

    def _place(self, queue: ConsumeQueue, number: int, position: int) -> str:
        return f"{queue.segments.place(number * ENTRY_BYTES)}: entry {number} of {queue.name} points at {position}"

    def at(self, position: int) -> Record:
        """The record at a position of the log. Raises Refused where none begins, Damaged."""
        self._require_open()
        return self._log.at(position)

    # -- as they come ------------------------------------------------------------------------------------------------

    def follow(
        self, queues: Mapping[tuple[str, int], int], *, tag: str = "", timeout: float | None = None
    ) -> Iterator[Record]:
        """The messages of several queues as they become visible, each queue's in order.

        `queues`: for each (topic, queue), the number to begin with · `tag`: only those that have it · `timeout`:
        seconds without a new message after which this ends; without it, it ends when the store closes. Raises as
        `read` does, and what stopped dispatch; Stopped in a forked child, also where the parent had begun.
        """
        following, before = dict(queues), None
        while not self._closing and (following != before or self._wait_for_any(following, timeout)):
            before = dict(following)
            yield from self._pass(following, tag)
        self._require_own()

    def _pass(self, following: dict[tuple[str, int], int], tag: str) -> Iterator[Record]:
        """Some of the messages of each of these queues; their numbers move on."""
        for (topic, queue), number in list(following.items()):
            low, high = self.range(topic, queue)
            if number < max(low, high):
                try:
                    found, following[topic, queue] = self._batch(topic, queue, number, FOLLOWED, tag)
                except Stopped:
                    if self._closing:
                        return
                    raise
                yield from found.records()

    def wait_for_any(self, queues: Mapping[tuple[str, int], int], timeout: float | None = 10.0) -> bool:
        """Returns when consumers see one of these numbers, one for each (topic, queue): True.

        False after `timeout` seconds, or when the store closes. Raises what stopped dispatch.
        """
        self._require_open()
        return self._wait_for_any(queues, timeout)

    def _wait_for_any(self, queues: Mapping[tuple[str, int], int], timeout: float | None) -> bool:
        raise NotImplementedError

    def _any_visible(self, queues: Mapping[tuple[str, int], int]) -> bool:
        return any(number < self.range(*queue)[1] for queue, number in queues.items())

    # -- by key and time ---------------------------------------------------------------------------------------------

    def find(
        self, topic: str, queue: int, key: str, number: int | None = None, end: int | None = None
    ) -> Iterator[Record]:
        """The messages of a queue with this key, from `number` (or the first that is kept) up to `end`.

        Keys stand in the property KEYS, separated by spaces. There is no index: every message in between is read,
        natively, which takes as long as `read_batch` of them all. Raises as `read` does.
        """
        wanted, low = np.frombuffer(key.encode(), np.uint8), self.range(topic, queue)[0] if number is None else number
        while low < (high := min(self.range(topic, queue)[1], low + AT_ONCE if end is None else end)):
            columns = self.read_batch(topic, queue, low, min(high - low, AT_ONCE))
            at = -1
            while (at := read_kernel.with_key(columns.rests, columns.rest_ends, at + 1, wanted)) < len(columns):
                yield columns[at]
            low += len(columns)

    def number_at(self, topic: str, queue: int, time: int) -> int:
        """The first number whose message was stored at `time`, in ms, or later; the end where none was."""
        self._require_open()
        start = self._log.start
        low, high = first, _ = self.range(topic, queue)
        found = self._all_queues.known(topic, queue)
        try:
            while found is not None and low < high:
                middle = (low + high) // 2
                if self._log.time_at(int(found.entries(middle, middle + 1)["position"][0])) < time:
                    low = middle + 1
                else:
                    high = middle
        except StoreError:
            if self._log.start == start and self.range(topic, queue)[0] == first:
                raise
            return self.number_at(topic, queue, time)  # files have expired meanwhile
        return low
