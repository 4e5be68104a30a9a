"""Everything that a program needs to embed a store. The examples below are run as tests.

A store is a folder. Messages are appended to the queues of a topic, and each queue gives them numbers from 0 on:

>>> from gapless.store import Refused, Settings, Store
>>> store = Store.open("data", Settings(synchronous=True))
>>> store.append("orders", 0, b"paid", tag="new", properties={"KEYS": "a17 b4"}).number
0
>>> positions, numbers = store.append_batch(
...     [("orders", 0, b"%d" % number, {"TAGS": "odd"} if number % 2 else {}) for number in range(6)]
... )
>>> numbers.tolist()
[1, 2, 3, 4, 5, 6]

Readers see a message once it has its entry in its queue, which is soon:

>>> store.wait_for("orders", 0, 6)
True
>>> store.range("orders", 0)
(0, 7)
>>> first = store.get("orders", 0, 0)
>>> first.number, first.body, first.tag, first.properties["KEYS"]
(0, b'paid', 'new', 'a17 b4')
>>> [record.body for record in store.read("orders", 0, 5, 10)]
[b'4', b'5']

Many are read soonest as columns; by tag, what has another is not even looked at:

>>> columns = store.read_batch("orders", 0, 0, 1000)
>>> columns.numbers.tolist(), columns.body_ends.tolist()
([0, 1, 2, 3, 4, 5, 6], [0, 4, 5, 6, 7, 8, 9, 10])
>>> columns.bodies.tobytes()
b'paid012345'
>>> store.read_batch("orders", 0, 0, 1000, tag="odd").numbers.tolist()
[2, 4, 6]
>>> [record.number for record in store.find("orders", 0, "b4")]
[0]

Several queues are followed as they grow, until the store closes or nothing came for a while:

>>> [record.number for record in store.follow({("orders", 0): 5, ("orders", 1): 0}, timeout=0.01)]
[5, 6]

A consumer group continues where it committed, after a crash as well:

>>> billing = store.group("billing")
>>> [record.number for record in billing.poll("orders", 0, 3)]
[0, 1, 2]
>>> billing.commit("orders", 0)
3

Others may read while this process writes; they need no lock, and change nothing:

>>> with Store.open_read_only("data") as view:
...     view.read("orders", 0, 6)[0].body
b'5'

How a store is doing is a value, to be asked for at any time:

>>> stats = store.stats()
>>> stats.messages, stats.queues, stats.dispatch_lag, stats.trouble
(7, 1, 0, None)
>>> stats.flushes > 0 and stats.p99_flush_ms >= stats.median_flush_ms > 0
True

A backup is a copy in a new folder, and opens as a store does. Meanwhile others go on appending:

>>> store.backup("copy") == store.stats().log_end
True
>>> with Store.open("copy") as copy:
...     copy.range("orders", 0), copy.group("billing").cursor("orders", 0)
((0, 7), 3)

Nothing expires by itself, unless settings say so, which are kept: here every minute, whole files of which
all is older than a week, and the oldest as long as the log has more than 10 GB.

>>> keep = Settings(reserved_hours=7 * 24, reserved_bytes=10 * 10**9, expire_interval=60_000, change=True)
>>> with Store.open("copy", keep) as copy:
...     copy.stats().expired_bytes
0

A message may wait for other work. Consumers see it once the block is left; where the block raises, they
never do. What a crash leaves undecided is asked for again, of `was_it_paid`: True, False, or None for not known yet:

>>> def was_it_paid(half):
...     return half.properties["KEYS"] in paid
>>> paid = set()
>>> with store.transactions(group="billing", check=was_it_paid) as tx:
...     with tx.begin("bills", 0, b"paid", properties={"KEYS": "a18"}) as bill:
...         paid.add("a18")
...         store.range("bills", 0)
(0, 0)
>>> store.wait_for("bills", 0, 0), store.get("bills", 0, 0).body
(True, b'paid')

In `asyncio`, those who wait take no thread:

>>> import asyncio
>>> asyncio.run(store.append_async("orders", 1, b"later")).number
0

Each failure is an error of the kind `StoreError`, and has changed nothing:

>>> try:
...     store.read("orders", 0, 100)
... except Refused as error:
...     print(error)
orders/0: number 100, expected one from 0 to 7; ask for `range`
>>> store.close()

The names, by what they are for:

* `Store`, `Settings`: a store that is open, and how it works. `StoreView`: one that is open for reading alone.
* `Messages`: what is appended at once, as columns. `AppendResult`: where a message is.
* `Record`: a message that was read. `MessageColumns`: many of them. `Group`: a consumer group.
* `Stats`: how a store is doing: sizes, rates, what consumers do not see yet, how long flushes take, what went wrong.
* `ProducerGroup`: transactions of a group of producers; `TransactionSettings` says how they work. `OpenTransaction`:
  one that is not decided yet, its half `HalfPlace`; `UndecidedHalf`: what a producer is asked about. `CommitResult`,
  `RolledBack`: what became of it. `TransactionCounts`: how all of them are doing.
* `StoreError`: whatever can go wrong. `Refused`: the call is not possible, and nothing has changed. `Stopped`: the
  store takes no more calls. `DiskFull`: there is no room for another file. `InUse`: another writer has the store.
  `NotAStore`: the folder holds something else. `WrongFileSize`: the files have another length than the settings say.
  `Damaged`: bytes that were safe are not what they were.
"""

from gapless.impl.records.columns import MessageColumns
from gapless.impl.records.errors import (
    Damaged,
    DiskFull,
    InUse,
    NotAStore,
    Refused,
    Stopped,
    StoreError,
    WrongFileSize,
)
from gapless.impl.records.record import Messages, Record
from gapless.impl.store.append_result import AppendResult
from gapless.impl.store.core import Settings
from gapless.impl.store.groups import Group
from gapless.impl.store.store import Store
from gapless.impl.store.transaction_calls import OpenTransaction, ProducerGroup
from gapless.impl.store.transaction_service import UndecidedHalf
from gapless.impl.store.upkeep.stats import Stats
from gapless.impl.store.view import StoreView
from gapless.impl.transactions.settings import (
    CommitResult,
    HalfPlace,
    RolledBack,
    TransactionCounts,
    TransactionSettings,
)

__all__ = [
    "AppendResult",
    "CommitResult",
    "Damaged",
    "DiskFull",
    "Group",
    "HalfPlace",
    "InUse",
    "MessageColumns",
    "Messages",
    "NotAStore",
    "OpenTransaction",
    "ProducerGroup",
    "Record",
    "Refused",
    "RolledBack",
    "Settings",
    "Stats",
    "Stopped",
    "Store",
    "StoreError",
    "StoreView",
    "TransactionCounts",
    "TransactionSettings",
    "UndecidedHalf",
    "WrongFileSize",
]
