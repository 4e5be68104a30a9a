"""Everything that a program needs to run a transaction coordinator or to be its client. Examples are run as tests.

A coordinator has a folder, and a limit on the transactions that may be active at once. Its clients begin transactions,
say which topics and subscriptions take part, and commit or abort:

>>> import asyncio
>>> from gapless.coordinator import Coordinator, CoordinatorSettings, connect_client
>>> from gapless.coordinator import ForeignTransaction, OutcomeConflict, TimedOut
>>> async def tell(number, commit, names):
...     print(f"{number}: {', '.join(names)}: {'commit' if commit else 'abort'}")
>>> async def example():
...     settings = CoordinatorSettings(max_active=2)
...     async with await Coordinator.open("data", settings, tell=tell) as coordinator:
...         client = await coordinator.client(permits=10, timeout=0.5)
...         async with client.transaction(life=60) as number:  # leaving well commits, raising aborts
...             await client.add(number, "orders")
...         first, second = await client.begin(), await client.begin()
...         try:
...             await client.begin()
...         except TimedOut:
...             print("no answer")
...         await client.commit(first)
...         await client.commit(first)
...         try:
...             await client.abort(first)
...         except OutcomeConflict as error:
...             print(error)
...         host, port = await coordinator.listen()
...         other = await connect_client(host, port)
...         try:
...             await other.abort(second)
...         except ForeignTransaction as error:
...             print(error)
...         await other.abort(second, token=client.token(second))
...         await other.close()
...         await client.close()
...         return client.token(first)
>>> token = asyncio.run(example())
0: orders: commit
no answer
transaction 1 is COMMITTED, and stays so
transaction 2 is another client's: its token is needed

At the limit there is no answer, so that no client asks again and again: it waits for as long as its timeout is, and no
more of its requests are out than it has permits. A decision stays, and a repeated request gets the same answer. A
transaction belongs to the client that began it: another one needs its token. Other processes connect over the loopback,
as they do to `gapless serve coordinator`; for other machines, `listen` needs a shared secret or TLS.

What is in the folder comes back, and so do the outcomes:

>>> async def again():
...     async with await Coordinator.open("data") as coordinator:
...         client = await coordinator.client()
...         await client.commit(1, token=token)
...         print(await client.begin())
...         await client.close()
>>> asyncio.run(again())
3

The names, by what they are for:

* `Coordinator`, `CoordinatorSettings`: a coordinator that runs, and how it works. `Tell`: tells those who take part.
* `CoordinatorClient`: a client, in the same process by `Coordinator.client`, in another one by `connect_client`.
* `read_secret`: the shared secret in a file, for `listen` and `connect_client`.
* `StepTape`: where the steps of both are written down, for `gapless check`.
* `StoreError`: whatever can go wrong. `TimedOut`: no answer came; it may have been done. `OutcomeConflict`: the
  transaction ends otherwise. `UnknownTransaction`: there is none, or its outcome is not kept any more.
  `ForeignTransaction`: another client began it. `WrongSecret`: one side does not know the shared secret. `LogFull`: the
  coordinator's disk is full. `Refused`, `Stopped`, `InUse`, `Damaged`, `DiskFull`, `NotAStore`: as of a store.
"""

from gapless.impl.coordinator.client import CoordinatorClient, connect_client
from gapless.impl.coordinator.connections.access import read_secret
from gapless.impl.coordinator.coordinator import Coordinator, Tell
from gapless.impl.coordinator.errors import (
    ForeignTransaction,
    LogFull,
    OutcomeConflict,
    TimedOut,
    UnknownTransaction,
    WrongSecret,
)
from gapless.impl.coordinator.recorder import StepTape
from gapless.impl.coordinator.values import CoordinatorSettings
from gapless.impl.records.errors import Damaged, DiskFull, InUse, NotAStore, Refused, Stopped, StoreError

__all__ = [
    "Coordinator",
    "CoordinatorClient",
    "CoordinatorSettings",
    "Damaged",
    "DiskFull",
    "ForeignTransaction",
    "InUse",
    "LogFull",
    "NotAStore",
    "OutcomeConflict",
    "Refused",
    "StepTape",
    "Stopped",
    "StoreError",
    "Tell",
    "TimedOut",
    "UnknownTransaction",
    "WrongSecret",
    "connect_client",
    "read_secret",
]
