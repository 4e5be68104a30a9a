"""Consumer groups: who reads a queue on behalf of whom, and how far they are, which survives a crash.

A cursor is the number at which a group continues. It is kept where a broker keeps it (`files/cursors.py`), so that a
broker that takes over a store continues there, and the other way round.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from threading import Lock

from gapless.impl.environment.operating_system import Disk
from gapless.impl.files import cursors
from gapless.impl.files.queues import ConsumeQueue
from gapless.impl.records.columns import MessageColumns
from gapless.impl.records.errors import Refused, Stopped, StoreError
from gapless.impl.records.record import Record
from gapless.impl.store.read_calls import ReadCalls
from gapless.impl.transactions.names import require_not_own

READ = "`Store.read` reads it"


class GroupCursors:
    """The cursors of all groups, in memory and in their file.

    They are read when the store opens. After a crash that took messages, no cursor stays behind the queue's end: or
    else the group would pass by the messages that take their numbers next.
    """

    def __init__(self, disk: Disk, queues: Iterable[ConsumeQueue]) -> None:
        self._disk = disk
        self._table: cursors.Table = {}
        self._lock, self._writing = Lock(), Lock()
        self._changes = self._written = 0  # how often a cursor moved, and how much of that is in the file
        self._error: StoreError | None = None
        self._closed = False
        try:
            self._path = cursors.path_of(disk)
            self._table, self._others = cursors.read(disk, self._path)
        except StoreError as error:
            self._error = error
            return
        ends = {(queue.topic, queue.id): queue.next for queue in queues}
        for name, of_group in self._table.items():
            topic = name.rpartition("@")[0]
            for queue, cursor in of_group.items():
                if cursor > ends.get((topic, queue), cursor):
                    of_group[queue] = ends[topic, queue]
                    self._changes += 1
        with suppress(StoreError):  # the next time
            self.write()

    def require_sound(self) -> None:
        """Raises Damaged or StoreError where the file could not be read."""
        if self._error is not None:
            raise self._error

    def get(self, group: str, topic: str, queue: int) -> int | None:
        """The cursor of a group; None if it has none."""
        return self._table.get(f"{topic}@{group}", {}).get(queue)

    def put(self, group: str, topic: str, queue: int, number: int) -> None:
        """Set the cursor of a group. Durable once `write` has returned. Raises Stopped."""
        with self._lock:
            if self._closed:
                raise Stopped("the store is closed; open it again")
            self._table.setdefault(f"{topic}@{group}", {})[queue] = number
            self._changes += 1

    def close(self, *, write: bool) -> None:
        """Nothing is put any more. Raises as `write` does."""
        with self._lock:
            self._closed = True
        if write:
            self.write()

    def write(self) -> None:
        """All that was put is durable. Raises DiskFull, StoreError."""
        with self._writing:
            if self._changes == self._written or self._error is not None:
                return
            with self._lock:
                changes, table = self._changes, {name: dict(found) for name, found in self._table.items()}
            cursors.write(self._disk, self._path, table, self._others)
            self._written = changes


class Group:
    """One consumer group. It polls messages, handles them, and commits: what was not committed is polled again.

    Any thread may call anything; for one queue, one thread at a time.
    """

    def __init__(self, name: str, store: ReadCalls, kept: GroupCursors) -> None:
        if not name or "@" in name or not name.isprintable():
            raise Refused(f"group {name!r}: expected a name without `@`")
        kept.require_sound()
        self.name = name
        self._store = store
        self._kept = kept
        self._next: dict[tuple[str, int], int] = {}  # what is polled next

    def cursor(self, topic: str, queue: int) -> int:
        """The cursor of this group after a crash: within what is kept."""
        return self._within(topic, queue, self._kept.get(self.name, topic, queue) or 0)

    def position(self, topic: str, queue: int) -> int:
        """The number that is polled next: the cursor at first."""
        polled = self._next.get((topic, queue))
        return self.cursor(topic, queue) if polled is None else self._within(topic, queue, polled)

    def _within(self, topic: str, queue: int, number: int) -> int:
        low, high = self._store.range(topic, queue)
        return max(low, min(number, high))

    def seek(self, topic: str, queue: int, number: int) -> None:
        """Read the next messages. The cursor stays until the next commit."""
        self._next[topic, queue] = number

    def poll(self, topic: str, queue: int, count: int = 32) -> list[Record]:
        """The next messages, at most `count`; none where consumers see none yet.

        Raises as `Store.read` does, and Refused for a topic of the store itself: no consumer sees a half.
        """
        require_not_own(topic, READ)
        number = self.position(topic, queue)
        found = self._store.read(topic, queue, number, count)
        self._next[topic, queue] = number + len(found)
        return found

    def poll_batch(self, topic: str, queue: int, count: int = 1000, *, tag: str = "") -> MessageColumns:
        """Read as `poll` does, in columns. With a tag, those among the next `count` that have it, maybe none."""
        require_not_own(topic, READ)
        number = self.position(topic, queue)
        end = min(number + count, self._store.range(topic, queue)[1])
        found = self._store.read_batch(topic, queue, number, end - number, tag=tag)
        self._next[topic, queue] = end
        return found

    def commit(self, topic: str, queue: int, number: int | None = None, *, durable: bool = True) -> int:
        """Acknowledge all before `number`, or all that was polled. Returns the cursor.

        `durable`: it is on disk when this returns; else within about a second, and when the store is closed. Raises
        Refused where no such message can be read yet, DiskFull, Stopped, StoreError.
        """
        to = self.position(topic, queue) if number is None else number
        end = self._store.range(topic, queue)[1]
        if not 0 <= to <= end:
            raise Refused(f"{topic}/{queue}: cursor {to}, expected a number up to {end}, the end of what can be read")
        self._kept.put(self.name, topic, queue, to)
        if durable:
            self._kept.write()
        return to
