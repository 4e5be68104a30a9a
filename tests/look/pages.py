"""The pages that are looked at: one of every kind of source and verdict."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from gapless import check
from gapless.traces.report.page.html import html
from tests.support import pulsar_recordings
from tests.support.command_line import ROOT
from tests.support.event_files import step, write
from tests.support.kafka.damage import damaged
from tests.support.kafka.recordings import defect as kafka_defect
from tests.support.kafka.recordings import recording as kafka_recording
from tests.support.rocketmq.damage import (
    Pick,
    entry_into_the_middle,
    entry_of_another_queue,
    entry_of_wrong_size,
    entry_past_the_end,
    entry_repeated,
    entry_zeroed,
)
from tests.support.rocketmq.recordings import copy_of, recording, recording_as_left, recording_with_client
from tests.support.rocketmq.transaction_damage import final_of_another_body, parked_too_early

EXAMPLE = ROOT / "examples/kafka"


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


def _faulty(fault: Callable[[Path, Pick], object], store: str = "lmq", seed: str = "7") -> str:
    with tempfile.TemporaryDirectory() as room:
        path = copy_of(store, Path(room))
        fault(path, Pick("any", seed))
        return _of(path)


def _timelines() -> str:
    """Events with names that no page expects: markup, letters from right to left, wide ones, and many."""
    names = ("<script>alert(1)</script>", "شارع الملك/٣", "🎉🎉/長い名前", "n" * 120)
    far = 1795248104141
    wrong = (("index", (0, far, 340, 0)), ("index", (7, 0, 340, 0)), ("settle", (far,)), ("append", (9, 1, 0, 1, 0)))
    events = []
    for name, (action, args) in zip(names, wrong, strict=True):
        events += [step("open", 0, 0, trace=name), *(step("append", n, 1, n, 340, 0, trace=name) for n in range(5))]
        events.append(step(action, *args, trace=name))
    events += [step("open", 0, 0, trace="r"), step("append", 0, 1, 0, 340, 0, trace="r", outcome="refused")]
    events += [step("open", 0, 0, trace="s"), step("append", 0, 1, 0, 340, 0, trace="s", saw={"end": 7})]
    with tempfile.TemporaryDirectory() as room:
        write(Path(room) / "queues.ndjson", events)
        return _of(Path(room) / "queues.ndjson")


def _gap() -> str:
    """A queue whose commit position would pass a gap."""
    events = [step("open", 0, 1, spec="dispatch"), *(step("scan", number, spec="dispatch") for number in range(20))]
    for number in (0, 1, 2, 4, 5, 6, 9):
        events += [step("take", number, spec="dispatch"), step("write", number, spec="dispatch")]
    events += [step("take", 8, spec="dispatch"), step("commit", 3, spec="dispatch"), step("commit", 7, spec="dispatch")]
    with tempfile.TemporaryDirectory() as room:
        write(Path(room) / "queue.ndjson", events)
        return _of(Path(room) / "queue.ndjson")


def _epochs() -> str:
    """A snapshot of Kafka's that has a wrong sequence, and a batch of an epoch that went back."""
    with tempfile.TemporaryDirectory() as room:
        damaged(kafka_recording("3.5.2-txn") / "n1", Path(room) / "snapshot", "snapshot_sequence", 3)
        damaged(EXAMPLE / "whole", Path(room) / "epoch", "epoch_back", 3)
        return _of(Path(room) / "snapshot", Path(room) / "epoch")


def _lanes() -> str:
    """A transaction of Kafka's that hangs, over its partitions."""
    with tempfile.TemporaryDirectory() as room:
        return _of(kafka_defect("3.5.2-stale", Path(room)) / "n1")


def _nothing() -> str:
    """A folder without anything to check."""
    with tempfile.TemporaryDirectory() as room:
        return _of(Path(room))


PAGES: dict[str, Callable[[], str]] = {
    "resurrected": lambda: _of(pulsar_recordings.recording("broker-restart-batch")),
    "limit": lambda: _of(pulsar_recordings.recording("broker-limit")),
    "ghosts": lambda: _of(recording_as_left("lab/ghosts")),
    "hazard": lambda: _of(recording_as_left("odd/ghosts_before_5.5.0")),
    "transactions": lambda: _of(recording_with_client("immunity")),
    "damaged-transaction": _damaged_transaction,
    "damaged-entry": _damaged_entry,
    "gap": _gap,
    "wrong-entry": lambda: _faulty(entry_into_the_middle),
    "repeated-entry": lambda: _faulty(entry_repeated),
    "entry-of-wrong-size": lambda: _faulty(entry_of_wrong_size),
    "entry-of-another-queue": lambda: _faulty(entry_of_another_queue),
    "entry-behind-the-log": lambda: _faulty(entry_past_the_end),
    "parked": lambda: _faulty(parked_too_early, "immunity", "3"),
    "timelines": _timelines,
    "kafka": lambda: _of(EXAMPLE / "damaged"),
    "kafka-epochs": _epochs,
    "kafka-transaction": _lanes,
    "kafka-whole": lambda: _of(EXAMPLE / "whole"),
    "nothing": _nothing,
    "whole": lambda: _of(recording_with_client("normal")),
    "several": lambda: _of(recording("lmq"), recording("midlife"), Path("no-such-place")),
}
