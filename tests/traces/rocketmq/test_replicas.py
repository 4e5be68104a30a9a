"""`gapless compare`: what differs between replicas is found at its place, and what may differ is not accused."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gapless.traces.sources.rocketmq.replicas.comparison import Comparison
from gapless.traces.sources.rocketmq.replicas.logs import compare_logs
from gapless.traces.sources.rocketmq.replicas.queues import compare_queues
from gapless.traces.sources.rocketmq.replicas.side import Side
from gapless.traces.sources.rocketmq.replicas.values import PairRow
from gapless.traces.sources.rocketmq.store.opening import open_store
from tests.support.command_line import gapless
from tests.support.night import NIGHT
from tests.support.rocketmq.recordings import recording, recording_as_left
from tests.support.rocketmq.replicas import compare
from tests.support.rocketmq.store_builder import StoreBuilder
from tests.support.rocketmq.stores import SCHEDULE_TOPIC, Entry, Record, encode, entries_of, log_files, read_log

KILLED = "lab/pair_slave_killed"


def recorded(name: str, role: str) -> Path:
    return recording_as_left(name) / role / "store"


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """A master as a broker left it, with two log files, and a copy of it to change."""
    return recorded(KILLED, "master"), shutil.copytree(recorded(KILLED, "master"), tmp_path / "slave" / "store")


def text(comparison: Comparison) -> str:
    return "\n".join(comparison.lines())


def only(comparison: Comparison) -> PairRow:
    """The one pair that was compared."""
    (found,) = comparison.pairs
    return found


def put(store: Path, position: int, data: bytes) -> None:
    """Write bytes into the log, which may lie in several files."""
    for file in log_files(store):
        base, size = int(file.name), file.stat().st_size
        low, high = max(position, base), min(position + len(data), base + size)
        if low < high:
            with file.open("r+b") as opened:
                opened.seek(low - base)
                opened.write(data[low - position : high - position])


def flip(store: Path, position: int) -> None:
    """Change one bit of the log."""
    (file,) = [file for file in log_files(store) if 0 <= position - int(file.name) < file.stat().st_size]
    at = position - int(file.name)
    put(store, position, bytes([file.read_bytes()[at] ^ 1]))


def built(folder: Path, count: int, *more: Record, change: Callable[[StoreBuilder], None] | None = None) -> Path:
    """A store of `count` messages, and then those of `more`."""
    builder = StoreBuilder()
    for number in range(count):
        builder.append(Record("orders", queue=number % 2, body=b"%06d" % number, properties=b"TAGS\x01a\x02"))
    if change:
        change(builder)
    for record in more:
        builder.append(record)
    return builder.write(folder / "store")


def test_a_file_that_one_side_lacks_is_named_and_not_called_alike(tmp_path: Path) -> None:
    slave = shutil.copytree(recording("normal"), tmp_path / "store")
    (slave / "commitlog/00000000000001048576").unlink()
    comparison = compare(recording("normal"), [slave])
    assert (
        "  logs: alike from 0 to 1,048,576 and from 2,097,152 to 3,615,346 (2.4 MiB); "
        "slave has no file 00000000000001048576"
    ) in text(comparison).splitlines()
    assert [(gap.low, gap.high, gap.roles) for gap in only(comparison).gaps] == [(1_048_576, 2_097_152, ["slave"])]


# -- what agrees -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "high", "queues", "entries"), [("lab/pair", 56_388, 6, 222), (KILLED, 73_886, 6, 290)]
)
def test_a_slave_agrees_with_its_master(name: str, high: int, queues: int, entries: int) -> None:
    """Both of a clean stop; and a slave that was killed, and is 42,339 bytes behind."""
    comparison = compare(recorded(name, "master"), [recorded(name, "slave")])
    found = only(comparison)
    assert (comparison.verdict, comparison.exit_code, found.reasons, found.notes) == ("conforms", 0, [], [])
    assert (found.low, found.high, found.queues, found.entries) == (0, high, queues, entries)
    assert read_log(recorded(name, "slave"))[-1].end == high


def records_of_the_master() -> list[Record]:
    return read_log(recorded(KILLED, "master"))


@settings(max_examples=100 if NIGHT else 8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_slave_that_ends_anywhere_agrees(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Cut at the end of a record or in the middle of one, with zeros or old bytes behind."""
    known = records_of_the_master()
    cut = data.draw(st.one_of(st.sampled_from([r.end for r in known]), st.integers(known[0].end, known[-1].end)))
    behind = data.draw(st.sampled_from([b"\0", b"\x7f"]))
    folder = tmp_path_factory.mktemp("cut")
    slave = shutil.copytree(recorded(KILLED, "master"), folder / "store")
    put(slave, cut, behind * (131_072 - cut))
    (slave / "abort").write_bytes(b"4711")
    (slave / "checkpoint").write_bytes(bytes(4096))
    found = only(compare(recorded(KILLED, "master"), [slave]))
    assert (found.verdict, found.fork, found.apart) == ("conforms", None, [])
    end = max(record.end for record in known if record.end <= cut)
    assert end <= found.high <= cut  # it may end with the blank behind the record
    shutil.rmtree(folder)


def test_a_copy_of_a_running_slave_is_not_accused_of_how_it_was_copied(tmp_path: Path) -> None:
    """Its checkpoint was taken after its log, which ends in the middle of a record: --copied says so."""
    slave = shutil.copytree(recorded(KILLED, "slave"), tmp_path / "store")
    last = read_log(slave)[-1]
    put(slave, last.end - 9, bytes(9))
    assert gapless("compare", recorded(KILLED, "master"), slave).exit_code == 1
    ran = gapless("compare", recorded(KILLED, "master"), slave, "--copied")
    assert (ran.exit_code, f"alike from 0 to {last.position:,} " in ran.stdout) == (0, True)
    flip(slave, in_body(read_log(slave)[100]))
    assert gapless("compare", recorded(KILLED, "master"), slave, "--copied").exit_code == 1


def test_logs_that_begin_and_end_elsewhere_agree(pair: tuple[Path, Path]) -> None:
    """The slave's first file has expired, and the master made its next file ahead."""
    master, slave = pair
    first, second = log_files(slave)
    first.unlink()
    found = only(compare(master, [slave]))
    assert (found.verdict, found.low, found.high) == ("conforms", int(second.name), 116_225)
    assert 0 < found.entries < 290
    (slave / "commitlog" / f"{131_072:020d}").write_bytes(bytes(65_536))
    assert only(compare(slave, [master])).verdict == "conforms"


def test_bytes_of_an_unread_blank_may_differ(pair: tuple[Path, Path]) -> None:
    master, slave = pair
    last = [record for record in read_log(slave) if record.end < 65_536][-1]
    put(slave, last.end + 8, b"\x55" * (65_536 - last.end - 8))
    found = only(compare(master, [slave]))
    assert (found.verdict, found.notes) == (
        "conforms",
        ["1 blank at the end of files differ in bytes that are never read"],
    )


def test_a_slave_that_is_longer_agrees_and_it_is_stated(tmp_path: Path) -> None:
    one, other = built(tmp_path / "one", 20), built(tmp_path / "other", 23)
    longer = read_log(other)[-1].end - read_log(one)[-1].end
    found = only(compare(one, [other]))
    (note,) = found.notes
    assert found.verdict == "conforms"
    assert note == f"the slave's log is {longer} bytes longer: it was copied later, or the master lost what it had sent"


def test_times_of_delivery_may_differ(tmp_path: Path) -> None:
    """They follow from the delay levels of the broker that built the queue."""
    delayed = Record(SCHEDULE_TOPIC, queue=1, body=b"later", properties=b"DELAY\x012\x02")
    one, other = (built(tmp_path / name, 5, delayed) for name in ("one", "other"))
    queue = other / "consumequeue" / SCHEDULE_TOPIC / "1" / f"{0:020d}"
    slots = bytearray(queue.read_bytes())
    slots[19] ^= 1
    queue.write_bytes(slots)
    assert only(compare(one, [other])).apart == []


def test_nothing_is_changed(pair: tuple[Path, Path]) -> None:
    master, slave = pair
    flip(slave, 1000)
    before = [hashlib.sha256(path.read_bytes()).digest() for path in sorted(slave.rglob("*")) if path.is_file()]
    compare(master, [slave])
    assert before == [hashlib.sha256(path.read_bytes()).digest() for path in sorted(slave.rglob("*")) if path.is_file()]


def test_a_running_broker_is_compared_up_to_its_moment(pair: tuple[Path, Path]) -> None:
    master, slave = pair
    ready = slave / "lock"
    program = (
        "import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX, 1); print(flush=True); input()"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(ready)], stdin=-1, stdout=-1) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        comparison = compare(master, [slave])
        flip(slave, 1000)
        departing = compare(master, [slave])
        holder.communicate(b"\n")
    assert (comparison.replicas[1].live, comparison.verdict) == (True, "conforms")
    assert departing.verdict == "departs"


# -- where logs part ---------------------------------------------------------------------------------------------------


def in_body(record: Record) -> int:
    return record.position + 88 + 3


def in_flag(record: Record) -> int:
    return record.position + 19


def in_properties(record: Record) -> int:
    return record.end - 3


def in_magic(record: Record) -> int:
    return record.position + 5


FIELDS = ((in_body, "body"), (in_flag, "flag"), (in_properties, "properties"))


@pytest.mark.parametrize(
    ("where", "field", "at"),
    [
        *((where, field, at) for where, field in FIELDS for at in (0, 100, -1)),
        *((in_magic, "magic number", at) for at in (0, 100)),
    ],
)
def test_one_byte_that_differs_is_found(
    where: Callable[[Record], int], field: str, at: int, pair: tuple[Path, Path]
) -> None:
    """In the first record, in one in the middle, and in the last."""
    master, slave = pair
    record = read_log(slave)[at]
    flip(slave, where(record))
    comparison = compare(master, [slave])
    found = only(comparison).fork
    assert (comparison.verdict, comparison.exit_code) == ("departs", 1)
    assert found is not None
    assert (found.position, found.byte, found.last, found.bytes_apart) == (
        *(record.position, where(record), where(record)),
        1,
    )
    assert found.differs == [field]
    last = at == -1
    assert found.again == (None if last else where(record) + 1)
    assert only(comparison).entries >= 420, "all but one can be compared, whatever is wrong with it"
    mine, theirs = found.there
    place = f"commitlog/{record.position - record.position % 65_536:020d}", record.position % 65_536
    assert (mine.file, mine.offset) == (theirs.file, theirs.offset) == place
    assert (mine.topic, mine.queue, mine.number) == (record.topic, record.queue, record.number)
    assert mine.key == record.property_map.get("UNIQ_KEY")
    assert (mine.intact, theirs.intact) == (True, {"body": False, "magic number": None}.get(field, True))
    assert f"the logs part at {record.position:,}: the first byte that differs is {where(record):,}" in text(comparison)


@given(position=st.integers(0, 116_224), block=st.sampled_from([1 << 12, 4099, 1 << 16, 1 << 20]))
@settings(max_examples=200 if NIGHT else 25, deadline=None)
def test_no_byte_is_left_out(position: int, block: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """For every size of blocks, each byte of a record counts, and the report names its record."""
    folder = tmp_path_factory.mktemp("flipped")
    slave = shutil.copytree(recorded(KILLED, "master"), folder / "store")
    flip(slave, position)
    one, other = (Side("master", open_store(store), 116_225, {}) for store in (recorded(KILLED, "master"), slave))
    found = compare_logs(one, other, block)
    known = [r for r in records_of_the_master() if r.position <= position]
    if known[-1].end + 8 <= position:
        assert (found.fork, found.blanks) == (None, 1)
    else:
        assert found.fork is not None
        assert found.fork.byte == position
        assert found.fork.position == (known[-1].position if position < known[-1].end else known[-1].end)
    shutil.rmtree(folder)


def test_two_messages_that_changed_places_are_found(pair: tuple[Path, Path]) -> None:
    master, slave = pair
    known = read_log(slave)
    one, other = next((a, b) for a, b in combinations(known[40:100], 2) if a.size == b.size)
    put(slave, one.position, encode(replace(other, position=one.position)))
    put(slave, other.position, encode(replace(one, position=other.position)))
    found = only(compare(master, [slave])).fork
    assert found is not None
    assert found.position == one.position
    assert [there.key for there in found.there] == [r.property_map["UNIQ_KEY"] for r in (one, other)]
    assert "body" in found.differs or "properties" in found.differs
    assert one.position < found.last < other.end


def test_a_log_that_forks_is_reported_with_both_records(tmp_path: Path) -> None:
    """Each went on by itself after the twentieth message."""
    common = 20
    mine = Record("orders", queue=0, body=b"of the master", properties=b"UNIQ_KEY\x01M\x02")
    theirs = Record("payments", queue=1, body=b"of the slave", properties=b"UNIQ_KEY\x01S\x02")
    one, other = built(tmp_path / "one", common, mine, mine), built(tmp_path / "other", common, theirs, theirs)
    comparison = compare(one, [other])
    fork = only(comparison).fork
    assert fork is not None
    assert fork.position == read_log(one)[common].position
    assert [(t.topic, t.queue, t.number, t.key) for t in fork.there] == [
        ("orders", 0, 10, "M"),
        ("payments", 1, 0, "S"),
    ]
    assert {"body", "topic", "size", "queue", "number"} <= set(fork.differs)
    assert only(comparison).apart == [], "behind the fork each queue has the entries of its own messages"
    assert [row.verdict for row in comparison.replicas] == ["conforms", "conforms"]
    assert (comparison.verdict, "up to the end of the part that both have" in text(comparison)) == ("departs", True)
    assert fork.again is None


# -- where queues part -------------------------------------------------------------------------------------------------


def test_an_entry_that_differs_is_found(tmp_path: Path) -> None:
    one, other = (built(tmp_path / name, 200) for name in ("one", "other"))
    queue = other / "consumequeue/orders/1"
    file = sorted(queue.iterdir())[2]  # of 30 entries each
    slots = bytearray(file.read_bytes())
    slots[5 * 20 + 19] ^= 1
    slots[7 * 20 + 7] ^= 1
    file.write_bytes(slots)
    for comparison, wrong in ((compare(one, [other]), "slave"), (compare(other, [one]), "master")):
        (apart,) = only(comparison).apart
        right = "master" if wrong == "slave" else "slave"
        assert (comparison.verdict, apart.queue, apart.number, apart.count) == ("departs", "orders/1", 65, 2)
        assert apart.why == f"the {right}'s entry is that of the message with number 65, and the {wrong}'s is not"
        assert {(e.file, e.offset) for e in apart.entries} == {(f"consumequeue/orders/1/{1200:020d}", 100)}
        assert only(comparison).fork is None
    sides = [Side("master", open_store(store), read_log(one)[-1].end, {}) for store in (one, other)]
    for block in (1, 7, 1000):
        (apart,) = compare_queues(sides[0], sides[1]._replace(role="slave"), block).apart
        assert (apart.number, apart.count) == (65, 2)


def test_a_slave_whose_topic_was_recreated_is_reported_as_what_it_is(tmp_path: Path) -> None:
    """Its master, which the recording lacks: the same log, with the queues that a master recreates."""
    slave = recording("odd/slave_topic_made_anew")
    master = shutil.copytree(slave, tmp_path / "master" / "store")
    for queue in (0, 1):
        (file,) = (master / "consumequeue/purge" / str(queue)).iterdir()
        new: dict[int, Entry] = {}
        for record in read_log(slave):
            for named, number, entry in entries_of(record):
                if named == ("purge", queue):
                    new = {number: entry} if number == 0 else {**new, number: entry}
        file.write_bytes(b"".join(new[number].encode() for number in sorted(new)).ljust(20_000, b"\0"))
    comparison = compare(master, [slave])
    assert [row.verdict for row in comparison.replicas] == ["conforms", "departs"]
    found = only(comparison)
    assert (found.fork, [apart.queue for apart in found.apart]) == (None, ["purge/0", "purge/1"])
    assert all(apart.number == 0 for apart in found.apart)
    assert "the slave's queue is that of the topic before, where the master's is the new one" in text(comparison)
    assert "    Its numbers start at 0 again with the message at " in text(comparison)
    assert "    Cause 1 of 2 that fit: this is a slave, which keeps its queue when " in text(comparison)


# -- epochs ------------------------------------------------------------------------------------------------------------

AS_WRITTEN = "3\n135411978\n1-0\n2-4711\n5-9000000000\n"
"""What `EpochFileCache` of 5.5.0 writes."""


def epochs(store: Path, *entries: tuple[int, int]) -> None:
    content = "".join(f"{epoch}-{start}\n" for epoch, start in entries)
    crc = zlib.crc32(content.encode()) & 0x7FFFFFFF
    (store / "epochFileCheckpoint").write_text(f"{len(entries)}\n{crc}\n{content}")


def test_the_epoch_file_is_that_of_a_broker(tmp_path: Path) -> None:
    (tmp_path / "epochFileCheckpoint").write_text("")
    epochs(tmp_path, (1, 0), (2, 4711), (5, 9_000_000_000))
    assert (tmp_path / "epochFileCheckpoint").read_text() == AS_WRITTEN


def test_epochs_of_which_one_knows_more_agree(tmp_path: Path) -> None:
    one, other = built(tmp_path / "one", 23), built(tmp_path / "other", 20)
    start = read_log(one)[20].position
    epochs(one, (1, 0), (2, 545), (4, start))
    epochs(other, (1, 0), (2, 545))
    found = only(compare(one, [other]))
    assert (found.verdict, found.epochs) == ("conforms", "epochs agree up to epoch 2, which starts at 545")


def test_logs_may_part_where_epochs_do(tmp_path: Path) -> None:
    """An old master holds what was never confirmed: it drops that when it connects next. Nothing else is excused."""
    mine, theirs = Record("orders", body=b"of epoch 3"), Record("orders", body=b"never confirmed")
    one, other = built(tmp_path / "one", 20, mine), built(tmp_path / "other", 20, theirs)
    start = read_log(one)[20].position
    epochs(one, (1, 0), (3, start))
    epochs(other, (1, 0))
    comparison = compare(one, [other])
    found = only(comparison)
    assert (comparison.verdict, comparison.exit_code, found.fork is not None) == ("inconclusive", 3, True)
    assert f"epochs fork at {start:,}, where epoch 1 ends: master continues with epoch 3" in found.epochs
    flip(other, in_body(read_log(other)[3]))
    assert only(compare(one, [other])).verdict == "departs"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("2\n135411978\n1-0\n2-4711\n5-9000000000\n", "says that there are 2 epochs, and has 3"),
        ("3\n1\n1-0\n2-4711\n5-9000000000\n", "the CRC is 1, expected 135411978"),
        ("nothing", "expected a count, a CRC, and a line EPOCH-START for each epoch"),
    ],
)
def test_a_broken_epoch_file_is_named(content: str, expected: str, tmp_path: Path) -> None:
    one, other = built(tmp_path / "one", 5), built(tmp_path / "other", 5)
    epochs(one, (1, 0))
    (other / "epochFileCheckpoint").write_text(content)
    comparison = compare(one, [other])
    assert (comparison.verdict, comparison.exit_code) == ("unreadable", 2)
    assert f"{other}/epochFileCheckpoint: {expected}" in text(comparison)


def test_a_broken_epoch_file_hides_no_difference(tmp_path: Path) -> None:
    """Logs and queues are compared all the same: damage departs, and a fork, which may be legal, is reported."""
    mine, theirs = Record("orders", body=b"of epoch 3"), Record("orders", body=b"never confirmed")
    one, other = built(tmp_path / "one", 20, mine), built(tmp_path / "other", 20, theirs)
    epochs(one, (1, 0), (3, read_log(one)[20].position))
    (other / "epochFileCheckpoint").write_text("")
    forked = compare(one, [other])
    assert (forked.verdict, only(forked).entries) == ("unreadable", 20)
    assert f"the logs part at {read_log(one)[20].position:,}" in text(forked)
    damaged = built(tmp_path / "damaged", 20, mine)
    (damaged / "epochFileCheckpoint").write_text("")
    flip(damaged, in_flag(read_log(damaged)[3]))
    found = only(compare(one, [damaged]))
    assert (found.verdict, found.fork is not None and found.fork.differs) == ("departs", ["flag"])


# -- what cannot be compared -------------------------------------------------------------------------------------------


def test_logs_with_nothing_in_common_are_inconclusive(pair: tuple[Path, Path], tmp_path: Path) -> None:
    _, slave = pair
    log_files(slave)[0].unlink()
    comparison = compare(built(tmp_path / "other", 20), [slave])
    assert (comparison.verdict, comparison.exit_code) == ("inconclusive", 3)
    assert "nothing in common to compare: the master's log reaches from 0 to" in text(comparison)


def test_a_store_is_not_compared_with_itself(tmp_path: Path) -> None:
    """Not by another name either: that would agree, whatever the other replica holds."""
    left = recorded("lab/pair", "master")
    (tmp_path / "slave").mkdir()
    (tmp_path / "slave" / "store").symlink_to(left)
    copied = shutil.copytree(left, tmp_path / "copied")
    linked = shutil.copytree(copied, tmp_path / "linked", copy_function=os.link)
    for store, other in ((left, left), (left, tmp_path / "slave"), (copied, linked)):
        comparison = compare(store, [other])
        assert (comparison.verdict, "both read the same files" in text(comparison)) == ("inconclusive", True)


def test_queues_in_a_database_are_compared_too(tmp_path: Path) -> None:
    store = recording("odd/rocksdb_queues")
    comparison = compare(store, [shutil.copytree(store, tmp_path / "store")])
    assert (comparison.verdict, only(comparison).queues > 2, only(comparison).entries > 20) == ("conforms", True, True)


def test_queues_that_are_not_there_are_not_reported_to_agree(tmp_path: Path) -> None:
    one, other = built(tmp_path / "one", 20), built(tmp_path / "other", 20)
    shutil.rmtree(other / "consumequeue")
    comparison = compare(one, [other])
    assert comparison.verdict == "inconclusive"
    assert only(comparison).reasons == ["queues were not compared: of the slave, there are no consume queues"]


@pytest.mark.parametrize("verdict", ["inconclusive", "conforms"])
def test_whole_queues_that_an_unclean_slave_lacks_are_not_reported_to_agree(verdict: str, tmp_path: Path) -> None:
    """Its next start may rebuild them, or not. For a slave that was stopped in order, their topic was deleted."""
    slave = shutil.copytree(recorded(KILLED, "slave"), tmp_path / "slave" / "store")
    shutil.rmtree(slave / "consumequeue" / "orders")
    if verdict == "conforms":
        (slave / "abort").unlink()
    master = recorded(KILLED, "master")
    for pair, lacks, has in (((master, slave), "slave", "master"), ((slave, master), "master", "slave")):
        comparison = compare(pair[0], [pair[1]])
        found = only(comparison)
        assert (comparison.verdict, found.queues) == (verdict, 4)
        expected = f"2 queues at the {has} alone"
        if verdict == "inconclusive":
            assert (
                f"{expected}, though the {lacks}'s log has messages of them: orders/0, orders/1. " in found.reasons[0]
            )
            assert not any(note.startswith(expected) for note in found.notes)
        else:
            assert (found.reasons, f"{expected}: orders/0, orders/1" in found.notes) == ([], True)


def test_where_nothing_lies_nothing_is_stated_to_be_unreadable(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "hollow/store/commitlog").mkdir(parents=True)
    (tmp_path / "hollow/store/consumequeue").mkdir()
    for folder, expected in (("empty", "the directory is empty"), ("hollow", "no log file in it")):
        comparison = compare(recorded("lab/pair", "master"), [tmp_path / folder])
        assert (comparison.verdict, comparison.exit_code, only(comparison).reasons) == (
            "inconclusive",
            3,
            ["not compared: it has no log to compare"],
        )
        assert expected in comparison.replicas[1].reasons[0]
        assert only(compare(tmp_path / folder, [recorded("lab/pair", "slave")])).reasons == [
            "not compared: its master has no log to compare"
        ]


def test_what_is_no_store_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("nothing")
    for wrong in (tmp_path / "missing", tmp_path / "folder", tmp_path / "folder" / "file"):
        comparison = compare(recorded("lab/pair", "master"), [wrong])
        assert (comparison.verdict, comparison.exit_code) == ("unreadable", 2), wrong
        assert only(comparison).reasons == ["not compared: it cannot be read"]


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_command_compares_several_slaves(pair: tuple[Path, Path], tmp_path: Path) -> None:
    master, slave = pair
    flip(slave, in_body(read_log(slave)[100]))
    out = tmp_path / "out.json"
    ran = gapless("compare", master, recorded(KILLED, "slave"), slave, "--json", out)
    assert ran.exit_code == 1
    assert ran.stdout.splitlines()[-1].startswith("departs: 3 replicas in ")
    output = json.loads(out.read_text())
    assert (output["schema"], [pair["verdict"] for pair in output["pairs"]]) == (1, ["conforms", "departs"])
    assert Comparison.model_validate(output).verdict == "departs"
    printed = gapless("compare", master, slave, "--json", "-")
    assert json.loads(printed.stdout)["pairs"][0]["fork"]["differs"] == ["body"]
    assert gapless("compare", master).exit_code == 2
    assert max(map(len, gapless("compare", "--help").stdout.splitlines())) <= 80
