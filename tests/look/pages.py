"""The pages that are looked at: one of every kind of source and verdict."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from gapless import check
from gapless.traces.report.html import html
from tests.support import pulsar_recordings
from tests.support.event_files import step, write
from tests.support.rocketmq.damage import Pick, entry_zeroed
from tests.support.rocketmq.recordings import copy_of, recording, recording_as_left, recording_with_client
from tests.support.rocketmq.transaction_damage import final_of_another_body


def _of(*paths: Path) -> str:
    return html(check(paths))


def _damaged_transaction() -> str:
    with tempfile.TemporaryDirectory() as room:
        store = copy_of("immunity", Path(room))
        final_of_another_body(store, Pick("any", "3"))
        return _of(store)


def _damaged_entry() -> str:
    with tempfile.TemporaryDirectory() as room:
        store = copy_of("lmq", Path(room))
        entry_zeroed(store, Pick("any", "7"))
        return _of(store)


def _gap() -> str:
    """A queue whose commit position would pass a gap."""
    told = [step("open", 0, 1, spec="dispatch"), *(step("scan", number, spec="dispatch") for number in range(20))]
    for number in (0, 1, 2, 4, 5, 6, 9):
        told += [step("take", number, spec="dispatch"), step("write", number, spec="dispatch")]
    told += [step("take", 8, spec="dispatch"), step("commit", 3, spec="dispatch"), step("commit", 7, spec="dispatch")]
    with tempfile.TemporaryDirectory() as room:
        write(Path(room) / "queue.ndjson", told)
        return _of(Path(room) / "queue.ndjson")


PAGES: dict[str, Callable[[], str]] = {
    "resurrected": lambda: _of(pulsar_recordings.recording("broker-restart-batch")),
    "limit": lambda: _of(pulsar_recordings.recording("broker-limit")),
    "ghosts": lambda: _of(recording_as_left("lab/ghosts")),
    "hazard": lambda: _of(recording_as_left("odd/ghosts_before_5.5.0")),
    "transactions": lambda: _of(recording_with_client("immunity")),
    "damaged-transaction": _damaged_transaction,
    "damaged-entry": _damaged_entry,
    "gap": _gap,
    "several": lambda: _of(recording("lmq"), recording("midlife"), Path("no-such-place")),
}
