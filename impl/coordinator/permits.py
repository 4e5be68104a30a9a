"""A client's permits, without threads, clock or network: so many requests at once, of whatever kind; the next waits.

A permit is in use from before the request goes out until it is answered or given up, and is given back exactly once,
before the caller gets the answer, so that it finds a free permit. A later answer is dropped.
"""

from __future__ import annotations

from collections import deque

from gapless.impl.coordinator.observer import PermitObserver
from gapless.impl.records.errors import Refused


class Permits:
    """The permits of one client.

    `in_use`: of each request that is out, when it took its permit. `waiting`: the requests whose callers wait, the
    first comes first. `now`, everywhere, is in ms and never steps back.
    """

    def __init__(self, count: int, timeout: int, observer: PermitObserver | None = None) -> None:
        """`count`: how many there are · `timeout`: ms after which a request is given up. Raises Refused."""
        if count < 1 or timeout < 1:
            raise Refused(f"{count} permits and a timeout of {timeout} ms, expected at least 1 of both")
        self.count = count
        self.timeout = timeout
        self.in_use: dict[int, int] = {}
        self.waiting: deque[int] = deque()
        self.cuts = 0
        self._observer = observer
        self._new = 0  # requests are numbered from 0 on: those below were asked for
        if observer is not None:
            observer.opened(count, timeout)

    @property
    def free(self) -> int:
        """The number of free permits."""
        return self.count - len(self.in_use)

    def ask(self, now: int) -> tuple[int, bool]:
        """A new request: its number, and whether it has a permit at once. If not, its caller waits."""
        number, self._new = self._new, self._new + 1
        if self.free and not self.waiting:
            self._acquire(number, now)
            return number, True
        self.waiting.append(number)
        if self._observer is not None:
            self._observer.waits(number)
        return number, False

    def reply(self, number: int, now: int) -> list[int] | None:
        """An answer to a request: who has a permit now of those that waited; None if it comes too late.

        Raises Refused: there is no such request, or it is not out yet.
        """
        if number in self.in_use:
            del self.in_use[number]
            if self._observer is not None:
                self._observer.replied(number)
            return self._wake(now)
        if not 0 <= number < self._new or number in self.waiting:
            raise Refused(f"an answer to request {number}, which never went out")
        if self._observer is not None:
            self._observer.replied_late(number)
        return None

    def next_timeout(self) -> int | None:
        """The time at which the next request is given up, in ms; None if none is out."""
        return (
            next(iter(self.in_use.values())) + self.timeout if self.in_use else None
        )  # they time out as they went out

    def due(self, now: int) -> list[int]:
        """The requests without an answer in time."""
        found = []
        for number, since in self.in_use.items():
            if now - since < self.timeout:
                break
            found.append(number)
        return found

    def time_out(self, number: int, now: int) -> list[int]:
        """The request is given up: who has a permit now of those that waited.

        Raises Refused: it holds none, or has time left.
        """
        if number not in self.in_use:
            raise Refused(f"request {number} holds no permit")
        if now - self.in_use[number] < self.timeout:
            raise Refused(f"request {number} has {self.in_use[number] + self.timeout - now} ms left")
        del self.in_use[number]
        if self._observer is not None:
            self._observer.timed_out(number, now)
        return self._wake(now)

    def disconnect(self) -> None:
        """The connection is lost: requests that are out keep their permits, and go out again."""
        self.cuts += 1
        if self._observer is not None:
            self._observer.disconnected()

    def rest(self) -> None:
        """All has come to rest."""
        if self._observer is not None:
            self._observer.rested(in_use=len(self.in_use), waiting=len(self.waiting))

    def _acquire(self, number: int, now: int) -> None:
        self.in_use[number] = now
        if self._observer is not None:
            self._observer.acquired(number, now)

    def _wake(self, now: int) -> list[int]:
        """Give free permits to the callers that have waited longest."""
        woken = []
        while self.waiting and self.free:
            number = self.waiting.popleft()
            self._acquire(number, now)
            woken.append(number)
        return woken
