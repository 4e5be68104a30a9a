"""Faults in transactions, of a patched store and planted into files: the comparison is not one that cannot fail."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from gapless.impl.store.core import Settings
from gapless.properties.reference_store.transactional.injected_faults import FAULTS
from tests.interop.broker import LOG_FILE, QUEUE_FILE
from tests.interop.halves.ledger import COMMIT, ROLLBACK, Ledger
from tests.interop.halves.writing import TransactionWriter
from tests.support.rocketmq import stores, transactions
from tests.support.rocketmq.stores import Record


@dataclass(frozen=True)
class PlantedHalf:
    """One fault: the body of its transaction, and a part of the line that must tell it."""

    what: str
    body: bytes
    reported_as: str


def write(home: Path) -> tuple[Ledger, list[PlantedHalf]]:
    """A store with five faults, each in a transaction of its own. Its log is one file."""
    ledger = Ledger(home)
    writing = TransactionWriter(ledger, Settings(file_size=LOG_FILE, queue_file_size=QUEUE_FILE))

    def begin(count: int, first: str, asked: str) -> bytes:
        """The body of the last one."""
        writing.begin(count, first, asked)
        return [*ledger.transactions][-1]

    try:
        passed = begin(1, "open", COMMIT)  # half 0
        begin(1, "open", ROLLBACK)
        writing.send(8)
        twice = begin(9, COMMIT, COMMIT)
        with FAULTS["a second commit writes a second final [#5574]"]():
            writing.group.commit(10)
        rolled_back = begin(1, ROLLBACK, ROLLBACK)
        with FAULTS["a commit after a rollback is taken [#8158]"]():
            writing.group.commit(11)
        overwritten = begin(1, COMMIT, COMMIT)
        writing.write_ops()
        unnamed = begin(2, COMMIT, COMMIT)  # halves 13 and 14
        begin(5, "open", COMMIT)
        writing.store.close()
    finally:
        writing.store.abandon()
    store = home / "store"
    _replace(store, lambda record: record.body == overwritten and transactions.is_final(record), overwritten.upper())
    _replace(store, lambda record: record.body == b"13,14,", b"13,13,")
    _pass_by_the_first(store)
    ledger.write_client_log()
    return ledger, [
        PlantedHalf("the half cursor has passed an open half", passed, "asks nobody about"),
        PlantedHalf("a final is written twice", twice, "2 times, not 1"),
        PlantedHalf("what was rolled back is committed", rolled_back, "1 times, not 0"),
        PlantedHalf("a final has another body", overwritten, "0 times, not 1"),
        PlantedHalf("an op does not name a half", unnamed, "which is decided"),
    ]


def _replace(store: Path, chosen: Callable[[Record], bool], body: bytes) -> None:
    """One record has another body, and its checksums are right."""
    (record,) = (record for record in stores.read_log(store) if chosen(record))
    file = stores.log_files(store)[0]
    data = bytearray(file.read_bytes())
    data[record.position : record.end] = stores.encode(replace(record, body=body))
    file.write_bytes(data)


def _pass_by_the_first(store: Path) -> None:
    """The half cursor is 1."""
    file = store / "config" / "consumerOffset.json"
    text, count = re.subn(r'(TRANS_HALF_TOPIC@CID_RMQ_SYS_TRANS"\s*:\s*\{\s*0\s*:)\s*0\b', r"\g<1>1", file.read_text())
    assert count == 1
    file.write_text(text)
