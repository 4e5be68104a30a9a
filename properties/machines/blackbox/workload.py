"""The content of a store's life, drawn by chance: requests of several clients, disturbances, and its end."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from gapless.properties.machines.blackbox.half_ledger import Decision
from gapless.properties.machines.blackbox.subject_process import QueueName, SentBody

QUEUES = [(topic, queue) for topic in ("orders", "stocks", "emails") for queue in range(4)]
"""Names of one length: where bodies are of one size too, so are records, and what is left behind may look like one."""

FILE_SIZES = (1 << 14, 1 << 16, 1 << 18)
MOST_IN_A_BATCH = 120
STREAMED = 0.25  # of the lives: a client appends to one queue, one message after another, while others follow it
STREAM = 100  # messages
LARGE = 2000  # messages; while they are written, an interrupt has time to come

Disturbance = Literal["interrupt", "fork", "files", "size", "lift", "intruder"]
Ending = Literal["kill", "kill when idle", "close", "kill in close", "interrupt in close"]
Opening = Literal["open", "open and check", "kill in open", "interrupt in open", "open with few files"]


ENDINGS: dict[Ending, int] = {
    "kill": 12,
    "kill when idle": 2,
    "close": 2,
    "kill in close": 2,
    "interrupt in close": 1,
}
OPENINGS: dict[Opening, int] = {
    "open": 16,
    "open and check": 4,
    "kill in open": 2,
    "interrupt in open": 1,
    "open with few files": 1,
}
DISTURBANCES: dict[Disturbance, int] = {"interrupt": 16, "fork": 3, "files": 2, "size": 2, "lift": 2, "intruder": 1}
VERBS = {
    "append": 60,
    "append many": 14,
    "append too much": 2,
    "flush": 5,
    "read": 8,
    "range": 4,
    "wait": 5,
    "expire": 3,
}
FOLLOWING = {"follow": 6}
TRANSACTIONAL: dict[str, int] = {"begin": 30, "begin many": 5, "commit": 30, "roll_back": 18, "check": 4}
"""Their relative likelihoods; some are asked for where the subject offers them."""

NOT_DECIDED = 0.1  # of the halves: no client decides them until the end
MAX_CHECKS = 3
ASK_EVERY = 30  # ms


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A request to come. `bodies`: what it appends."""

    client: int
    verb: str
    queue: QueueName
    bodies: tuple[SentBody, ...] = ()


@dataclass(slots=True)
class LifePlan:
    """One process with the store open.

    `window`: calls that wait for their answers at a time · `disturbances`: each with the answers after which it comes ·
    `end_after`: likewise; with a kill, calls may be left · `pauses`: seconds before each of the things that are to come
    at an odd moment.
    """

    opening: Opening
    calls: list[PlannedCall]
    window: int
    disturbances: list[tuple[int, Disturbance]]
    ending: Ending
    end_after: int
    pauses: list[float] = field(default_factory=list)


class LifePlanner:
    """Plans lives of one store. `file_size`: bytes that one file of it is to have · `synchronous`: as the settings."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.file_size = chance.choice(FILE_SIZES)
        self.synchronous = chance.random() < 0.6
        self.transactions: dict[str, int] = {}  # as `open` has them; none where there are none
        self.has_followers = False
        self._named = 0
        self._size: int | None = None  # of all bodies in this life
        self._queues = chance.sample(QUEUES, chance.randint(1, len(QUEUES)))

    @property
    def settings(self) -> dict[str, Any]:
        """The settings for `open`."""
        more = {"transactions": self.transactions} if self.transactions else {}
        return {"file_size": self.file_size, "synchronous": self.synchronous, **more}

    def begin_transactions(self) -> None:
        """True if the store is to have transactions: it asks producers by itself, or on request."""
        self.transactions = self.chance.choice(({"max_checks": MAX_CHECKS}, {"max_checks": 0, "ask_every": ASK_EVERY}))

    def intent(self) -> Decision | None:
        """The wish of a half's producer."""
        if self.chance.random() < NOT_DECIDED:
            return None
        return "commit" if self.chance.random() < 0.6 else "roll_back"

    def life(self) -> LifePlan:
        """The plan of the next process and its disturbances."""
        chance = self.chance
        clients = chance.randint(1, 4)
        self._size = chance.choice((None, chance.randint(10, 60)))
        calls = [self._call(chance.choice((0, chance.randrange(clients)))) for _ in range(chance.randint(5, 70))]
        if chance.random() < STREAMED:
            at, client, queue = chance.randrange(len(calls)), chance.randrange(clients), chance.choice(self._queues)
            calls[at:at] = [PlannedCall(client, "append", queue, (self.body(queue),)) for _ in range(STREAM)]
        several = chance.choices((0, 1, 2, 3, 5), (1, 2, 3, 2, 1))[0]
        disturbances = [(chance.randrange(len(calls)), _drawn(chance, DISTURBANCES)) for _ in range(several)]
        ending = _drawn(chance, ENDINGS)
        opening = _drawn(chance, OPENINGS)
        end_after = chance.randrange(len(calls)) if ending == "kill" else len(calls)
        pauses = [chance.random() * chance.choice((0, 0.0002, 0.001, 0.01)) for _ in range(several + 3)]
        window = chance.choice((2, 8, 30, len(calls)))
        in_turn = sorted(disturbances, key=lambda one: one[0])
        return LifePlan(opening, calls, window, in_turn, ending, end_after, pauses)

    def body(self, queue: QueueName | None = None) -> SentBody:
        """A message that is like no other, to a queue or to any."""
        chance = self.chance
        self._named += 1
        name = f"{self._named}"
        longest = chance.choices((40, 400, self.file_size // 3), (12, 6, 1))[0]
        return SentBody(
            queue or chance.choice(self._queues), name, self._size or chance.randint(len(name) + 1, longest)
        )

    def is_acceptable(self, bodies: tuple[SentBody, ...]) -> bool:
        """True if a store may not refuse them."""
        return all(body.size <= self.file_size // 2 for body in bodies)

    def before_an_interrupt(self) -> list[PlannedCall]:
        """Calls of client 0 that may be under way when it comes."""
        if self._size is None or self.chance.random() < 0.5:
            return []
        return [self._batch(0, self.chance.choice(self._queues), LARGE)]

    def _batch(self, client: int, queue: QueueName, most: int) -> PlannedCall:
        bodies = tuple(self.body() for _ in range(self.chance.randint(2, most)))
        return PlannedCall(client, "append", queue, bodies)

    def _call(self, client: int) -> PlannedCall:
        chance = self.chance
        following, transactional = FOLLOWING if self.has_followers else {}, TRANSACTIONAL if self.transactions else {}
        verb = _drawn(chance, VERBS | following | transactional)
        queue = chance.choice(self._queues)
        if verb == "append":
            return PlannedCall(client, "append", queue, (self.body(),))
        if verb == "append many":
            return self._batch(client, queue, MOST_IN_A_BATCH)
        if verb in {"begin", "begin many"}:
            bodies = tuple(self.body() for _ in range(chance.randint(2, 40) if verb == "begin many" else 1))
            return PlannedCall(client, "begin", queue, bodies)
        if verb == "append too much":
            self._named += 1
            return PlannedCall(client, "append", queue, (SentBody(queue, f"{self._named}", self.file_size + 10),))
        return PlannedCall(client, verb, queue)


T = TypeVar("T")


def _drawn(chance: random.Random, shares: Mapping[T, int]) -> T:
    """One of them."""
    return chance.choices(list(shares), list(shares.values()))[0]
