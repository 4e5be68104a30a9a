"""Everything that a store, its views and its transactions do, once, in memory."""

from __future__ import annotations

import numpy as np

from gapless.impl.environment.memory import MemoryDisk
from gapless.impl.files.log import LARGE
from gapless.impl.recorder.rows import WIDTH, complete, records
from gapless.impl.records.input_checks import sound
from gapless.impl.records.record import Messages
from gapless.impl.store.core import Core, Settings
from gapless.impl.store.groups import GroupCursors
from gapless.impl.store.store import Store
from gapless.impl.store.view import StoreView
from gapless.impl.transactions.settings import TransactionSettings
from gapless.impl.transactions.transactions import Transactions


def use_everything() -> None:
    """Append, build, flush, read, and find everything again."""
    small, disk = Settings(file_size=1 << 16, queue_file_size=4000, workers=1), MemoryDisk()
    with Store.open(disk, small) as store:
        store.append("orders", 0, b"one", tag="new")
        store.append("orders", 0, bytes(LARGE), tag="large")
        store.append_batch(Messages.of_list([("orders", 0, b"many", {})]))
        store.wait_for_any({("orders", 0): 2}, None)
        store.flush()
        store.read("orders", 0, 0)
        for _ in range(2):  # the second time, the queue is at hand
            store.get("orders", 0, 1)
        store.at(0)
        list(store.find("orders", 0, "key"))
    Store.open(disk, small).abandon()
    Store.open(disk, small).close()  # it looks at all of the log


def use_views() -> None:
    """Open one, look for what is new, and read."""
    disk = MemoryDisk()
    core = Core.open(disk, Settings(file_size=1 << 16, queue_file_size=4000, workers=1))
    for body in (b"one", bytes(LARGE)):
        core.append(core.queues.named("orders", 0), body, b"", 0)
    core.close(0)
    with StoreView.open(disk) as view:
        view.read_batch("orders", 0, 0)
        for _ in range(2):
            view.get("orders", 0, 0)
        view.at(0)
        list(view.find("orders", 0, "key"))


def use_transactions() -> None:
    """Prepare, decide, put back, set aside, and find everything again."""
    disk = MemoryDisk()
    core = Core.open(disk, Settings(file_size=1 << 16, queue_file_size=4000, workers=1))
    for now in (0, 1):
        settings = TransactionSettings(max_checks=1, transaction_timeout=0)
        tx = Transactions.open(core.log, core.queues, GroupCursors(disk, core.queues.all), settings)
        tx.commit(tx.prepare("orders", 0, b"one", {}, "producers", now).number, now)
        numbers, _ = tx.prepare_many(sound(Messages.of_list([("orders", 0, b"many", {})] * 4)), "producers", now)
        tx.commit_many(numbers[:1], now)
        tx.roll_back_many(numbers[1:2], now)
        _, new = tx.put_back(numbers[2:], now)
        tx.park(new, now)
        tx.write_op(now)
    core.abandon()


def use_rows() -> None:
    """Complete a row, and look for records."""
    file, rows, queues = np.zeros(1 << 10, np.uint8), np.zeros((1, WIDTH), np.int64), np.zeros(1, np.int64)
    complete(file, 0, rows, 0, queues, queues, queues)
    records(file, 0, 0, len(file))


USES = (use_everything, use_views, use_transactions, use_rows)
