"""Reading by number, tag, key and time: objects and columns say the same, and what is not sound is not handed out."""

import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gapless.impl.records.columns import MessageColumns
from gapless.impl.records.errors import Damaged, Refused, Stopped, StoreError
from gapless.impl.records.record import FIXED, HEAD, HERE, MAGIC_V1, Messages, Record
from gapless.impl.store.core import Settings
from gapless.impl.store.store import Store
from gapless.properties.simulation.simulated_disk import SteppedClock


class Lane(IntEnum):
    """Numbers by name."""

    FAST = 1


SMALL = Settings(file_size=8192, queue_file_size=400, pre_allocate=False)
COUNT = 300
TAGS = ("paid", "", "größe", "Aa", "BB")  # the last two have the same code


def sent() -> list[tuple[str, int, bytes, dict[str, str]]]:
    """Messages of two queues and all tags, some with keys."""
    return [
        (
            "orders",
            number % 2,
            b"%d." % number * (number % 40),
            ({"TAGS": tag} if (tag := TAGS[number // 2 % 5]) else {}) | {"KEYS": f"k{number} all"},
        )
        for number in range(2 * COUNT)
    ]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path, SMALL) as opened:
        opened.append_batch(Messages.of_list(sent()))
        for queue in range(2):
            assert opened.wait_for("orders", queue, COUNT - 1)
        yield opened


def messages_in(columns: MessageColumns) -> list[tuple[int, bytes, str]]:
    return [(number, columns.body(at), columns.tags[at]) for at, number in enumerate(columns.numbers.tolist())]


def wanted(queue: int) -> list[tuple[int, bytes, str]]:
    """Return the messages of a queue: number, body, tag."""
    of_queue = [message for message in sent() if message[1] == queue]
    return [(number, body, p.get("TAGS", "")) for number, (_, _, body, p) in enumerate(of_queue)]


def test_columns_are_the_messages_wherever_files_end(store: Store) -> None:
    assert len(store.core.log.segments.bases) > 3
    assert len(store.core.queues.all[0].segments.bases) > 3
    for low, count in ((0, COUNT), (0, 1), (17, 5), (19, 2), (250, 1000), (COUNT, 5)):
        assert messages_in(store.read_batch("orders", 1, low, count)) == wanted(1)[low : low + count]


def test_columns_and_records_say_the_same(store: Store) -> None:
    columns, records = store.read_batch("orders", 0, 0, COUNT), store.read("orders", 0, 0, COUNT)
    alone = [store.get("orders", 0, number) for number in range(COUNT)]
    again = [store.get("orders", 0, number) for number in range(COUNT)]  # files are at hand now
    assert records == alone == again == columns.records() == [columns[at] for at in range(COUNT)]
    assert records == [store.at(position) for position in columns.positions.tolist()]
    assert columns.times.tolist() == [record.store_time for record in records]
    assert {(r.topic, r.queue, r.size, r.properties["KEYS"]) for r in records} == {
        ("orders", 0, r.size, f"k{2 * r.number} all") for r in records
    }
    assert [r.tag for r in alone] == [r.tag for r in records] == columns.tags
    ends = [record.position + record.size for record in store.read("orders", 1, 0, COUNT)]
    assert set(columns.positions.tolist()[1:]) & set(ends)  # each begins where one ends, but where files do
    assert "orders/0 number=5" in repr(records[5])


def test_a_tag_chooses_messages_and_not_those_of_the_same_code(store: Store) -> None:
    for tag in ("paid", "größe", "Aa", "BB"):
        chosen = store.read_batch("orders", 0, 3, COUNT, tag=tag)
        assert messages_in(chosen) == [message for message in wanted(0)[3:] if message[2] == tag]
    assert len(store.read_batch("orders", 0, 0, COUNT, tag="unknown")) == 0


def test_keys_are_found(store: Store) -> None:
    assert [record.number for record in store.find("orders", 0, "k80")] == [40]
    assert [record.number for record in store.find("orders", 0, "all", 290)] == list(range(290, COUNT))
    assert not list(store.find("orders", 0, "k"))
    assert not list(store.find("orders", 0, "al"))
    assert not list(store.find("nowhere", 0, "all"))


def test_what_is_not_there_is_refused(store: Store) -> None:
    for number in (-1, COUNT + 1):
        with pytest.raises(Refused, match=f"number {number}, expected one from 0 to {COUNT}"):
            store.read_batch("orders", 0, number)
    with pytest.raises(Refused, match="consumers see no number 300 yet"):
        store.get("orders", 0, COUNT)
    assert len(store.read_batch("nowhere", 0, 0)) == 0
    store.close()
    for read in (store.read, store.read_batch, store.get):
        with pytest.raises(Stopped):
            read("orders", 0, 0)


DAMAGES = {
    "body": (90, "the body of the record has not its checksum"),
    "number": (27, "the record has not the checksum"),
    "queue": (15, "the record has not the checksum"),
    "position": (35, "no record begins"),
    "size": (2, "no record begins"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_message_is_reported_by_every_way_of_reading(store: Store, damage: str) -> None:
    found = store.get("orders", 0, 39)
    store.get("orders", 0, 40)
    at, expected = DAMAGES[damage]
    data, base = store.core.log.view(found.position)
    data[found.position - base + at] ^= 1
    place = store.core.log.segments.place(found.position)
    entry = store.core.queues.all[0].segments.place(39 * 20)
    for read in (
        lambda: store.read_batch("orders", 0, 0, COUNT),
        lambda: store.read("orders", 0, 30, 32),
        lambda: store.read("orders", 0, 39, 1),
        lambda: store.get("orders", 0, 39),
        lambda: list(store.find("orders", 0, "all")),
    ):
        with pytest.raises(Damaged, match=expected) as raised:
            read()
        assert str(raised.value).startswith((place, entry))
    assert len(store.read("orders", 0, 0, 39)) == 39


def test_a_record_with_a_checksum_of_itself_must_match_it(tmp_path: Path) -> None:
    def append(store: Store, body: bytes, *, flaw: int = 0) -> None:
        """Append like a broker that seals records: the checksum covers all bytes before it."""
        log, queue = store.core.log, store.core.queues.named("orders", 0)
        parts = HEAD.pack(
            FIXED - 1 + len(queue.prefix) + len(body) + 20, MAGIC_V1, zlib.crc32(body) & 0x7FFFFFFF, 0, 0, queue.next,
            log.end, 0, 0, HERE, 0, HERE, 0, 0, len(body),
        ) + body + queue.prefix + (20).to_bytes(2, "big")  # fmt: skip
        digits = b"%010d" % ((zlib.crc32(parts) & 0x7FFFFFFF) ^ flaw)
        log.append(queue, body, b"__CRC32#\x01" + digits[::-1] + b"\x02", 0, born=0)

    with Store.open(tmp_path, replace(SMALL, checksums=False), clock=lambda: 0) as store:
        for number in range(10):
            append(store, b"%d" % number)
        append(store, b"other", flaw=4)
        assert store.wait_for("orders", 0, 10)
        assert [record.body for record in store.read("orders", 0, 0, 10)] == [b"%d" % n for n in range(10)]
        for _ in range(2):
            assert [store.get("orders", 0, n).body for n in range(10)] == [b"%d" % n for n in range(10)]
            for read in (
                lambda: store.get("orders", 0, 10),
                lambda: store.read("orders", 0, 10),
                lambda: store.read_batch("orders", 0, 0, 11),
            ):
                with pytest.raises(Damaged, match="has not the checksum"):
                    read()


def outcome(read: Callable[[str, int, int], Record]) -> object:
    """The message, or what was raised."""
    try:
        return read("orders", 1, 1)
    except StoreError as error:
        return type(error), str(error)


@pytest.mark.parametrize("checksums", [False, True])
@pytest.mark.parametrize("before", ["orders", "orders2"])
def test_one_message_is_handed_out_where_others_hand_it_out(tmp_path: Path, *, checksums: bool, before: str) -> None:
    """Whatever byte of a record or of its entry is another. `before`: the topic of the message before."""
    with Store.open(tmp_path, Settings(file_size=4096, queue_file_size=400, checksums=checksums)) as store:
        for topic, body in ((before, b"before"), ("orders", b"first"), ("orders", b"body" * 3), ("orders", b"last")):
            store.append(topic, 1, body, tag="paid", properties={"KEYS": "k"})
        store.wait_for("orders", 1, 2 + (before == "orders"))
        record = store.get("orders", 1, 1)
        data = store.core.log.view(0)[0][record.position : record.position + record.size]
        flaws = 0
        for at in range(len(data)):
            for flaw in (1, 2, 0x10, 0x20, 0x80, 0xFF):
                data[at] ^= flaw
                found = outcome(store.get)
                assert (
                    found == outcome(store._one) == outcome(lambda *of: store.read_batch(of[0], of[1], of[2], 1)[0])
                ), at
                data[at] ^= flaw
                assert outcome(store.get) == record
                flaws += not isinstance(found, Record)
        assert flaws == 6 * len(data) if checksums else 300 < flaws < 6 * len(data)
        entry = store.core.queues.named("orders", 1).slots(1, 2)[0]
        for at in range(len(entry)):
            for flaw in (1, 2, 0x10, 0x20, 0x80, 0xFF):
                entry[at] ^= flaw
                assert outcome(store.get) == outcome(store._one), at
                entry[at] ^= flaw


def test_single_messages_leave_nothing_behind(store: Store) -> None:
    record = store.get("orders", 0, 1)
    data = store.core.log.view(0)[0]
    for flaw in (0, 1):
        data[record.position + record.size - 30] ^= flaw
        outcome(lambda topic, *_: store.get(topic, 0, 1))
        before = sys.getallocatedblocks()
        for _ in range(2000):
            outcome(lambda topic, *_: store.get(topic, 0, 1))
        assert sys.getallocatedblocks() - before < 1000


@pytest.mark.parametrize("number", [np.int64(3), np.int32(3), np.uint8(3), True, Lane.FAST])
def test_any_integer_is_a_number(store: Store, number: Any) -> None:
    for _ in range(2):
        assert store.get("orders", 0, number) == store.get("orders", 0, int(number))
        assert type(store.get("orders", 0, number).number) is int
    with pytest.raises(TypeError):
        store.get("orders", 0, float(number))  # type: ignore[arg-type]


def test_what_expires_is_refused_and_gives_its_room_back(tmp_path: Path) -> None:
    clock = SteppedClock(0)
    with Store.open(tmp_path, SMALL, clock=clock) as store:
        for number in range(COUNT):
            clock.now = 10 * number
            store.append("orders", 0, bytes(200))
        store.wait_for("orders", 0, COUNT - 1)
        assert store.get("orders", 0, 3) == store.get("orders", 0, 3)
        assert store.number_at("orders", 0, 1500) == 150
        store.expire(1500)
        low = store.range("orders", 0)[0]
        assert 100 < low <= 150
        assert not store._files
        for read in (store.read, store.read_batch, store.get):
            with pytest.raises(Refused, match=f"expected one from {low} to {COUNT}"):
                read("orders", 0, 3)
        assert store.get("orders", 0, low).number == low


def test_queues_are_followed_until_the_store_closes(tmp_path: Path) -> None:
    found: list[Record] = []
    with Store.open(tmp_path, SMALL) as store:
        following = threading.Thread(target=lambda: found.extend(store.follow({("orders", 0): 0, ("orders", 1): 2})))
        following.start()
        for message in sent():
            store.append(*message[:3])
        for queue in range(2):
            assert store.wait_for("orders", queue, COUNT - 1)
        assert [record.number for record in store.follow({("orders", 0): 7}, timeout=0.01)] == list(range(7, COUNT))
    following.join(30)
    assert not following.is_alive()
    for queue, low in ((0, 0), (1, 2)):
        numbers = [record.number for record in found if record.queue == queue]
        assert numbers == list(range(low, low + len(numbers)))


def test_tags_are_followed_from_the_first_that_is_kept(store: Store) -> None:
    chosen = list(store.follow({("orders", 1): 0}, tag="paid", timeout=0))
    assert [(r.number, r.body, r.tag) for r in chosen] == [one for one in wanted(1) if one[2] == "paid"]
    assert not list(store.follow({("orders", 1): COUNT + 1}, timeout=0))
    with pytest.raises(Refused):
        next(store.follow({("orders", 1): -1}, timeout=0))


def test_columns_without_a_message_have_everything() -> None:
    empty = MessageColumns.joined([])
    assert (len(empty), empty.tags, empty.records(), empty.body_ends.tolist()) == (0, [], [], [0])
    assert empty.where(np.zeros(0, bool)) is empty


def test_a_topic_that_was_recreated_has_its_new_messages(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store:
        for number in range(5):
            store.append("orders", 0, b"%d" % number)
        assert store.wait_for("orders", 0, 4)
        assert [store.get("orders", 0, 0).body for _ in range(3)] == [b"0"] * 3
        store.core.queues.all[0].next = 0  # as if a broker deleted the topic, and a producer sent to it again
        store.append("orders", 0, b"again")
        store.append("orders", 0, b"more")
        assert store._pool.wait(lambda: store.range("orders", 0) == (0, 2), 10)
        assert [store.get("orders", 0, number).body for number in (0, 1, 0)] == [b"again", b"more", b"again"]
