"""Stores for a broker, written by our implementation, each with the list of its messages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

from gapless.impl.records.record import Messages
from gapless.impl.store.core import Settings
from gapless.impl.store.store import Store
from tests.interop.broker import LOG_FILE, QUEUE_FILE
from tests.interop.written import Message, WrittenStore
from tests.support.rocketmq import stores
from tests.support.rocketmq.stores import Queue, Record

TOPICS = {"orders": 4, "payments": 2, "audit-log": 1}  # a broker takes messages for names of [%|a-zA-Z0-9_-]+ only
EMPTY = ("orders", 2)  # a queue with neighbours on both sides, and no message
MESSAGES = 13_000  # which fill more than half of the last file, so that the next one is made ahead
TAGS = ("TagA", "paid", "créé", "订单-😀", "a-rather-long-tag-name-for-hashing", "")
LONGEST_BATCH = 60  # messages
UNINDEXED = 50  # messages of an abandoned store, at least


def make_store(store: Path, *, clean: bool) -> tuple[WrittenStore, list[str]]:
    """A store of several topics, queues and files, closed in order, or abandoned; and what it answered wrongly."""
    choose = Random(6)
    written = WrittenStore({(topic, queue): [] for topic, queues in TOPICS.items() for queue in range(queues)})
    queues = [queue for queue in written.queues if queue != EMPTY]
    opened = Store.open(store, Settings(file_size=LOG_FILE, queue_file_size=QUEUE_FILE))
    try:
        wrong = write(opened, written, choose, queues, MESSAGES)
    except BaseException:
        opened.abandon()
        raise
    if clean:
        opened.close()
        return written, wrong
    opened.abandon()
    return written, wrong + _die_again(store, written, choose, queues)


def _die_again(store: Path, written: WrittenStore, choose: Random, queues: Sequence[Queue]) -> list[str]:
    """Abandon a store, open it, and abandon it again: no entries were made, and an append was under way."""
    opened = Store.open(store, Settings(workers=0))
    try:
        before = written.count
        wrong = write(opened, written, choose, queues, UNINDEXED)
        written.unindexed = written.count - before
        opened.core.log.make_ready()
        end = opened.core.log.end
    finally:
        opened.abandon()
    base = end - end % LOG_FILE
    with (store / "commitlog" / f"{base:020}").open("r+b") as log:
        log.seek(end - base)
        log.write(stores.encode(Record("orders", b"never acknowledged", position=end))[:60])
    return wrong


def write(store: Store, written: WrittenStore, choose: Random, queues: Sequence[Queue], count: int) -> list[str]:
    """At least `count` messages for these queues, singly and in batches. They are added to `written`.

    Returns a line for each that was given another number than the next one of its queue.
    """
    wrong: list[str] = []

    def note(queue: Queue, body: bytes, given: dict[str, str], position: int, number: int) -> None:
        following = len(written.queues.get(queue, ()))
        if number != following:
            wrong.append(f"{queue[0]}/{queue[1]}: message {following} was given the number {number}")
        written.add(queue, Message(position, body, given))

    until = written.count + count
    while written.count < until:
        if choose.random() < 0.9:
            queue, body, given = _message(choose, queues, written.count)
            others = {name: value for name, value in given.items() if name != "TAGS"}
            placed = store.append(*queue, body, tag=given.get("TAGS", ""), properties=others)
            note(queue, body, given, placed.position, placed.number)
        else:
            batch = range(choose.randint(1, LONGEST_BATCH))
            many = [_message(choose, queues, written.count + index) for index in batch]
            columns = Messages.of_list([(*queue, body, given) for queue, body, given in many])
            for message, *place in zip(many, *map(list, store.append_batch(columns)), strict=True):
                note(*message, *map(int, place))
    return wrong


def _message(choose: Random, queues: Sequence[Queue], index: int) -> tuple[Queue, bytes, dict[str, str]]:
    """Some queues get more than others."""
    queue = choose.choices(queues, range(1, 1 + len(queues)))[0]
    pairs = {"KEYS": f"key-{index}", "UNIQ_KEY": f"{index:032X}", "TAGS": choose.choice(TAGS)}
    given = {name: value for name, value in pairs.items() if value}
    return queue, choose.randbytes(choose.randrange(1, 400)), given
