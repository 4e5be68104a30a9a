"""The second round: our implementation opens a broker's store, reads all of it, continues and closes it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

from gapless.impl.records import record as records
from gapless.impl.records.errors import StoreError
from gapless.impl.store.store import Store
from tests.interop.files import Contents, changes, overwritten
from tests.interop.makers import write
from tests.interop.remoting import PulledMessages
from tests.interop.rounds import Step, name_of
from tests.interop.written import WrittenStore, differences
from tests.support.rocketmq import stores
from tests.support.rocketmq.stores import Queue
from tests.support.rocketmq.transactions import CHECKSUM

WE = "we read"
AT_ONCE = 32  # messages a read
MORE = 1000  # messages
NEW = (("returns", 0), ("payments", 2))  # a new topic, and one queue more of an old one


def visit(home: Path, written: WrittenStore) -> Iterator[Step]:
    """Let our implementation open a closed store, read it, append to it, read that too, and close it.

    Appended messages are added to `written`.
    """
    folder = home / "store"
    before, queues = Contents.of(folder), [*written.queues]
    end = before.end_of(written.last.position)
    began = time.monotonic()
    store = Store.open(folder)
    try:
        yield Step("our implementation opens it", f"after {time.monotonic() - began:.1f} s")
        yield read(store, folder, written)
        wrong = write(store, written, Random(len(before.files)), [*queues, *NEW], MORE)
        yield Step("more is appended", f"{written.count} messages now, {len(written.queues)} queues", wrong)
        unseen = [name_of(queue) for queue, found in written.queues.items() if not _seen(store, queue, len(found))]
        yield Step("consumers see it", "within 10 s", [f"{name}: the last message is not seen" for name in unseen])
        yield read(store, folder, written)
        store.close()
    finally:
        store.abandon()
    after = Contents.of(folder)
    yield Step("it closes the store", changes(before, after), overwritten(before, after, end, queues))


def _seen(store: Store, queue: Queue, count: int) -> bool:
    return not count or store.wait_for(*queue, count - 1)


def read(store: Store, folder: Path, written: WrittenStore) -> Step:
    """Compare every message of every queue with what was written and, part by part, with the log."""
    lying = {record.position: record for record in stores.read_log(folder)}
    found, wrong = 0, []
    for queue, messages in written.queues.items():
        consumed = consume(store, queue)
        found += len(consumed.records)
        wrong += differences(queue, messages, consumed, WE)
        others = [record for record in consumed.records if record != _plain(lying.get(record.position))]
        wrong += [f"{name_of(queue)}: at {others[0].position} we read {others[0]}"] if others else []
    unknown = {(queue.topic, queue.id) for queue in store.core.queues.all if queue.committed} - {*written.queues}
    wrong += [f"{name_of(queue)}: nothing was written there" for queue in sorted(unknown)]
    return Step("it reads every queue", f"{found} of {written.count} messages, {len(written.queues)} queues", wrong)


def consume(store: Store, queue: Queue) -> PulledMessages:
    """A queue from its first number to its end."""
    found: list[stores.Record] = []
    number, end = store.range(*queue)
    while number < end:
        try:
            some = store.read(*queue, number, AT_ONCE)
        except StoreError as error:
            return PulledMessages(found, f"a read at {number} of {end} was refused: {error}")
        if not some:
            return PulledMessages(found, f"a read at {number} of {end} brought nothing")
        found += map(_as_decoded, some)
        number += len(some)
    return PulledMessages(found)


def _as_decoded(record: records.Record) -> stores.Record:
    """A record that our implementation read, as the tests' own reader would tell it."""
    return stores.Record(
        topic=record.topic,
        body=record.body,
        properties=stores.properties(record.properties),
        queue=record.queue,
        number=record.number,
        position=record.position,
        flag=record.flag,
        sys_flag=record.sys_flag,
        born_time=record.born_time,
        born_host=record.born_host,
        store_time=record.store_time,
        store_host=record.store_host,
        reconsume_times=record.reconsumed,
        prepared_position=record.half,
    )


def _plain(record: stores.Record | None) -> stores.Record | None:
    """Return a record of the tests' own reader without details of its property bytes and its checksum."""
    if record is None:
        return None
    properties = {name: value for name, value in record.property_map.items() if name != CHECKSUM}
    return replace(record, properties=stores.properties(properties))
