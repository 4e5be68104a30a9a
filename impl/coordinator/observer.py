"""Observers of the steps of a coordinator and of its clients' permits: all that these know of a recorder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from gapless.impl.coordinator.steps import Key, Status


class Found(NamedTuple):
    """A transaction as the log has it when a coordinator is opened. `key`, `time`, `life`: None, 0, 0 if it ended."""

    number: int
    status: Status
    key: Key | None
    time: int
    life: int
    added: int


class CoordinatorObserver(Protocol):
    """Observes the steps of a coordinator where they take effect: those of the log, when they are on disk."""

    def recovered(self, limit: int, found: Sequence[Found]) -> None:
        """The log was read to its end, and the coordinator runs."""

    def admitted(self, key: Key) -> None:
        """A request to begin passed the limit."""

    def ignored(self, key: Key) -> None:
        """A request to begin is met with silence."""

    def burnt(self, key: Key) -> None:
        """An admitted request could not be written."""

    def begun(self, number: int, key: Key, time: int, life: int) -> None:
        """The transaction is in the log."""

    def handed(self, number: int, key: Key) -> None:
        """Its client is given it."""

    def added(self, number: int) -> None:
        """A participant joins."""

    def decided(self, number: int, to: Status, time: int | None) -> None:
        """Its end begins; `time`: when it had had its time, None if its client asked."""

    def finished(self, number: int, to: Status) -> None:
        """It ended."""

    def acknowledged(self, number: int, status: Status) -> None:
        """The outcome is reported to a client."""

    def closed(self, *, at_rest: bool) -> None:
        """The coordinator was closed in order. `at_rest`: no transaction was active."""


class PermitObserver(Protocol):
    """Observes what one client does with its permits. `now`: ms by the client's own clock."""

    def opened(self, permits: int, timeout: int) -> None:
        """The client is new, with so many permits, and gives a request up after `timeout` ms."""

    def waits(self, number: int) -> None:
        """A caller finds no permit."""

    def acquired(self, number: int, now: int) -> None:
        """A request takes a permit."""

    def replied(self, number: int) -> None:
        """It is answered."""

    def timed_out(self, number: int, now: int) -> None:
        """It is given up."""

    def replied_late(self, number: int) -> None:
        """An answer comes to a request that was given up."""

    def disconnected(self) -> None:
        """The connection is lost."""

    def rested(self, *, in_use: int, waiting: int) -> None:
        """The client has come to rest."""
