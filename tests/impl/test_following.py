"""Followers deliver each message once and in order while others append, expire and restart.

Another thread or process may append between any two steps of a follower. Here it does so at chosen steps: each time
that a follower asks how far a queue can be read, planned messages are appended first. So a case is the same every time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gapless.impl.records.errors import Refused
from gapless.impl.store.core import Settings
from gapless.impl.store.read_calls import FOLLOWED, ReadCalls
from gapless.impl.store.store import Store
from gapless.impl.store.view import StoreView
from gapless.properties.simulation.simulated_disk import SimulatedDisk, SteppedClock

SMALL = Settings(file_size=8192, queue_file_size=400, pre_allocate=False, workers=1)
QUEUES = (("orders", 0), ("orders", 1), ("bills", 0))
TAGS = ("", "paid")
Queue = tuple[str, int]


@dataclass
class Follower:
    """A reader of some queues, and the number of each that it is to read next."""

    kind: str
    tag: str
    following: dict[Queue, int]
    records: Iterator[Any] | None = None


class FollowMachine(RuleBasedStateMachine):
    """Compares what followers deliver with the messages that were appended."""

    @initialize()
    def begin(self) -> None:
        """Open a new store, and a view as another process has it."""
        self.disk, self.clock = SimulatedDisk(), SteppedClock()
        self.sent: dict[Queue, list[tuple[bytes, str]]] = {queue: [] for queue in QUEUES}
        self.planned: dict[int, list[tuple[Queue, str, int]]] = {}
        self.asked, self.busy = 0, False
        self.followers: list[Follower] = []
        self.loop = asyncio.new_event_loop()
        self._open()
        self._append(QUEUES[0], "", 1)
        self.view = StoreView.open(self.disk)
        self._interleave(self.view)

    def teardown(self) -> None:
        """All that is visible was delivered."""
        if hasattr(self, "store"):
            self.planned.clear()
            for follower in self.followers:
                for _ in range(3):  # the first pass may end by what has expired
                    self._pull(follower, 1 << 20)
                self._require_complete(follower)
            self.view.close()
            self.store.close()
            self.loop.close()

    def _open(self) -> None:
        self.store = Store.open(self.disk, SMALL, clock=self.clock)
        self._interleave(self.store)

    def _interleave(self, reads: Any) -> None:
        """Let planned messages come before the answer to each question of how far a queue reaches."""
        answer = reads.range

        def asked(topic: str, queue: int) -> tuple[int, int]:
            if not self.busy:
                self.asked += 1
                for place, tag, count in self.planned.pop(self.asked, ()):
                    self._append(place, tag, count)
            found: tuple[int, int] = answer(topic, queue)
            return found

        reads.range = asked

    def _append(self, queue: Queue, tag: str, count: int) -> None:
        self.busy = True
        for _ in range(count):
            body = b"%d" % len(self.sent[queue]) * 20
            self.store.append(*queue, body, tag=tag)
            self.sent[queue].append((body, tag))
            self.clock.now += 1
        assert self.store.wait_for(*queue, len(self.sent[queue]) - 1)
        self.busy = False

    # -- others --------------------------------------------------------------------------------------------------------

    @rule(queue=st.sampled_from(QUEUES), tag=st.sampled_from(TAGS), count=st.integers(1, 60))
    def append(self, queue: Queue, tag: str, count: int) -> None:
        """Append at rest."""
        self._append(queue, tag, count)

    @rule(share=st.integers(0, 4))
    def expire(self, share: int) -> None:
        """Delete the oldest files."""
        self.busy = True
        self.store.expire(self.clock.now - share * 40)
        self.busy = False

    @rule()
    def restart(self) -> None:
        """Close the store and open it again: its followers end."""
        self.busy = True
        self.store.close()
        for follower in self.followers:
            if follower.kind != "view":
                self._pull(follower, FOLLOWED)
                assert follower.records is None
        self._open()
        self.busy = False

    # -- followers -----------------------------------------------------------------------------------------------------

    @rule(
        kind=st.sampled_from(("thread", "asyncio", "view")),
        tag=st.sampled_from(TAGS),
        queues=st.sets(st.sampled_from(QUEUES), min_size=1),
        back=st.integers(0, 30),
    )
    def follow(self, kind: str, tag: str, queues: set[Queue], back: int) -> None:
        """Follow some queues from a number near their end."""
        begin = {queue: max(self.store.range(*queue)[0], len(self.sent[queue]) - back) for queue in sorted(queues)}
        self.followers.append(Follower(kind, tag, begin))

    @precondition(lambda self: self.followers)
    @rule(
        which=st.integers(0, 9),
        count=st.sampled_from((1, 7, FOLLOWED)),
        meanwhile=st.lists(
            st.tuples(st.integers(1, 4), st.integers(0, 2), st.sampled_from(TAGS), st.integers(1, 30)), max_size=3
        ),
    )
    def pull(self, which: int, count: int, meanwhile: list[tuple[int, int, str, int]]) -> None:
        """Take the next messages of a follower, while others append to its queues."""
        follower = self.followers[which % len(self.followers)]
        for ahead, place, tag, more in meanwhile:
            queue = sorted(follower.following)[place % len(follower.following)]
            self.planned.setdefault(self.asked + ahead, []).append((queue, tag, more))
        self._pull(follower, count)

    def _pull(self, follower: Follower, count: int) -> None:
        if follower.records is None:
            follower.records = self._records_of(follower)
        try:
            taken = list(islice(follower.records, count))
        except Refused:
            taken, follower.records = [], None
            reads: ReadCalls = self.view if follower.kind == "view" else self.store
            lowest = {queue: reads.range(*queue)[0] for queue in follower.following}
            assert any(number < lowest[queue] for queue, number in follower.following.items())
            for queue, number in follower.following.items():
                follower.following[queue] = max(number, lowest[queue])
        else:
            if len(taken) < count:
                follower.records = None

    def _records_of(self, follower: Follower) -> Iterator[Any]:
        """The messages as they are delivered, each compared with the next one that was sent."""
        following, tag = dict(follower.following), follower.tag
        if follower.kind == "asyncio":
            found = self._one_by_one(self.store.follow_async(following, tag=tag, timeout=0))
        else:
            found = (self.view if follower.kind == "view" else self.store).follow(following, tag=tag, timeout=0)
        for record in found:
            queue = (record.topic, record.queue)
            number = self._next_of(follower, queue)
            assert [(record.number, record.body, record.tag)] == [
                (number, *one) for one in self.sent[queue][number:][:1]
            ]
            follower.following[queue] = number + 1
            yield record

    def _one_by_one(self, records: Any) -> Iterator[Any]:
        while (record := self.loop.run_until_complete(anext(records, None))) is not None:
            yield record

    def _next_of(self, follower: Follower, queue: Queue) -> int:
        """The next number that the follower must be given: that of a message with its tag."""
        sent = self.sent[queue]
        rest = range(follower.following[queue], len(sent))
        return next((number for number in rest if follower.tag in ("", sent[number][1])), len(sent))

    def _require_complete(self, follower: Follower) -> None:
        for queue in follower.following:
            assert self._next_of(follower, queue) == len(self.sent[queue]), (follower.kind, queue)

    @invariant()
    def no_message_is_lost(self) -> None:
        """All that was appended can be read, from the lowest number on."""
        for queue, sent in self.sent.items():
            self.busy = True
            assert self.store.range(*queue)[1] == len(sent)
            self.busy = False


FollowMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestFollowMachine = FollowMachine.TestCase


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("kind", ["store", "view"])
def test_a_follower_advances_by_what_it_has_read(kind: str, tag: str) -> None:
    """A pass read up to a newer end than that by which it advanced: messages came twice."""
    with Store.open(SimulatedDisk(), SMALL) as store:
        store.append("orders", 0, b"0", tag=tag)
        store.wait_for("orders", 0, 0)
        with StoreView.open(store.core.disk) as view:
            reads: Any = view if kind == "view" else store
            answer, sent = reads.range, 1

            def asked(topic: str, queue: int) -> tuple[int, int]:
                nonlocal sent
                if sent < 20:
                    sent += 1
                    store.append("orders", 0, b"more", tag=tag)
                    while answer(topic, queue)[1] < sent:
                        pass
                found: tuple[int, int] = answer(topic, queue)
                return found

            reads.range = asked
            found = [record.number for record in reads.follow({("orders", 0): 0}, tag=tag, timeout=0)]
    assert found == list(range(20))
