"""Values of a coordinator: its settings, a transaction in its table, a reply."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from gapless.impl.coordinator.log import LENGTH
from gapless.impl.coordinator.steps import Key, Status
from gapless.impl.records.errors import Refused

MAX_LIFE = 900.0  # seconds
LONGEST_LIFE = 86400.0 * 366  # seconds


@dataclass(frozen=True)
class CoordinatorSettings:
    """Settings of a coordinator.

    `max_active`: transactions that may be active at once; 0: no limit; below 0: no request is answered · `keep`:
    outcomes of ended transactions that are remembered, the newest · `file_size`: bytes of a file of its log ·
    `max_life`: seconds that a transaction may stay open; a request for more is refused.
    """

    max_active: int = 0
    keep: int = 100_000
    file_size: int = LENGTH
    max_life: float = MAX_LIFE

    def __post_init__(self) -> None:
        if self.keep < 1:
            raise Refused(f"keep is {self.keep}, expected at least 1: a client that asks again gets the outcome")
        if self.file_size < 128:
            raise Refused(f"file_size is {self.file_size}, expected at least 128 bytes")
        if not 0.001 <= self.max_life <= LONGEST_LIFE:
            raise Refused(f"max_life is {self.max_life} s, expected 0.001 to {LONGEST_LIFE:.0f}")


class Reply(NamedTuple):
    """A reply to a client. `problem`: the reason if the request failed, else empty."""

    waiter: object
    number: int
    status: Status
    problem: str = ""


@dataclass(slots=True)
class ActiveTransaction:
    """One that takes a slot, or is about to.

    `status`: as the log on disk has it · `ahead`: as it will be when all that waits is on disk · `names`: who takes
    part, and whether the log on disk says so · `added`: the number of joins on disk · `asker`: who asked for
    it last · `waiters`: for its outcome.
    """

    number: int
    key: Key
    time: int
    life: int
    status: Status = Status.ABSENT
    ahead: Status = Status.OPEN
    names: dict[bytes, bool] = field(default_factory=dict)
    added: int = 0
    asker: object = None
    waiters: list[object] = field(default_factory=list)
