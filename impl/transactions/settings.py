"""Settings of transactions, and the results that callers get."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

from gapless.impl.records.errors import Refused


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """Settings for checks and names of halves, by default as a broker has them."""

    max_checks: int = 15  # how often a half is put back and its producer asked, before it is set aside
    check_interval: int = 30_000  # ms between two rounds of checks
    transaction_timeout: int = 6_000  # ms that a half is left alone at least, before anybody is asked about it
    op_batch_bytes: int = 4096  # of an op's body that is full
    op_batch_interval: int = 3_000  # ms that a decided half waits for its op at most
    cache_capacity: int = 8_000  # halves

    def __post_init__(self) -> None:
        for field in fields(self):
            given, least = getattr(self, field.name), int(field.name not in {"transaction_timeout", "cache_capacity"})
            most = (1 << 15) - 1 if field.name == "max_checks" else 1 << 31
            if not isinstance(given, int) or not least <= given <= most:
                raise Refused(f"settings: {field.name}={given!r}, expected a whole number from {least} to {most}")


class HalfPlace(NamedTuple):
    """The place of a half: its number among halves, its position in the log, its record's bytes."""

    number: int
    position: int
    size: int


class CommitResult(NamedTuple):
    """The place of a committed half's message: its number in the user's queue, and its position in the log.

    Asked again, it is the same; -1 for the number where the message has expired since.
    """

    position: int
    number: int


class RolledBack(NamedTuple):
    """A half that was rolled back. `durable`: its op is on disk; before that, a crash has its producer asked again."""

    half: int
    durable: bool


@dataclass(frozen=True, slots=True)
class TransactionCounts:
    """Counts since the transactions were opened, and of what waits."""

    undecided: int
    waiting: int  # decided halves that no op names yet
    ops: int  # written
    named: int  # halves that they name
    put_back: int
    parked: int
    cached: int
    cache_puts: int
    cache_hits: int
    cache_misses: int
    cache_evicted: int
    half_cursor: int
    op_cursor: int
