"""One public bug report that was tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.support.pulsar_recordings import Line, changed, copied
from tests.support.rocketmq.recordings import copy_of

Verdict = Literal["conforms", "departs", "inconclusive"]
Tells = Literal["violation", "hazard", "anomaly", "reason", "note", "nothing"]
"""In which part of a report the check names it."""
TRACKERS = {
    "rocketmq": ("", "https://github.com/apache/rocketmq/issues/{}"),
    "dledger": ("dledger", "https://github.com/openmessaging/dledger/issues/{}"),
    "pulsar": ("", "https://github.com/apache/pulsar/issues/{}"),
    "ROCKETMQ": ("ROCKETMQ-", "https://issues.apache.org/jira/browse/ROCKETMQ-{}"),
}
Laid = Callable[[Path], Path]
"""Lays a store or a recording into a folder, and says what is to be checked."""


@dataclass(frozen=True)
class PublicReport:
    """One report, a store that shows what it describes, and what a check says of that.

    `issues`: the threads, by tracker and number · `tells` and `names`: where a check names it, and how: the id of a
    rule, the name of an anomaly, or words of a sentence · `on`: what the store is made of, and how · `remark`: why a
    check is silent, or what more there is to know.
    """

    issues: str
    says: str
    shows: str
    lay: Laid
    verdict: Verdict
    tells: Tells
    names: str
    on: str
    remark: str = ""


def altered(recording: str, change: Callable[[Path], object], *, client: bool = False) -> Laid:
    """A RocketMQ recording, changed."""

    def lay(room: Path) -> Path:
        store = copy_of(recording, room, client=client)
        change(store)
        return store.parent

    return lay


def as_recorded(recording: str, *, client: bool = False) -> Laid:
    """A RocketMQ recording as a real broker left it."""
    return altered(recording, lambda _: None, client=client)


def altered_trace(recording: str, change: Callable[[list[Line]], list[Line] | None]) -> Laid:
    """A Pulsar recording whose lines were changed."""
    return lambda room: changed(room / "changed", recording, change)


def trace_as_recorded(recording: str) -> Laid:
    """A Pulsar recording as it was made."""
    return lambda room: copied(room, recording)
