"""The native code of transactions."""

from __future__ import annotations

from gapless.impl.environment.memory import MemoryDisk
from gapless.impl.environment.native_code import NativeCode
from gapless.impl.records.input_checks import sound
from gapless.impl.records.record import Messages
from gapless.impl.store.core import Core, Settings
from gapless.impl.store.groups import GroupCursors
from gapless.impl.transactions.settings import TransactionSettings
from gapless.impl.transactions.transactions import Transactions


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


TRANSACTION_CODE = NativeCode(use_transactions)
