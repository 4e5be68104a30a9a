"""Stores under `enableDLegerCommitLog`: the log's records lie in entries of a DLedger log, each behind a header."""

import shutil
import struct
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from gapless import check
from gapless.traces.problems import Unreadable
from gapless.traces.report.values import Report
from gapless.traces.sources.rocketmq.log.dledger import dledger_of
from gapless.traces.sources.rocketmq.store.opening import open_store
from tests.support.rocketmq.played_store import PlayedStore
from tests.support.rocketmq.recordings import RECORDINGS, recording, recording_as_left
from tests.support.rocketmq.replicas import compare

HEADER = struct.Struct(">iiqqqiiii")  # magic, size, index, term, position, channel, chain CRC, body CRC, body's size
MAGIC, SIZE, INDEX, TERM, POSITION, _, _, _, BODY = range(9)
ENTRY = struct.Struct(">qiq")
UNCOMMITTED, TRUNCATED = "dledger_uncommitted_5.5.0", "dledger_truncated_5.5.0"
WHOLE = "dledger_lives_5.5.0"
RECORDED = {  # entries by the index of the last one, and whether the last stop was one in order
    "dledger_lives_5.5.0": (1001, True),
    "dledger_lives_4.9.7": (1066, True),
    "dledger_killed_5.3.3": (522, False),
}


def test_every_recording_is_judged_here() -> None:
    there = {path.name.removesuffix(".tar.xz") for path in (RECORDINGS / "layouts").glob("dledger_*.tar.xz")}
    assert there == {*RECORDED, UNCOMMITTED, TRUNCATED}


def entries(store: Path) -> list[tuple[Path, int, tuple[int, ...]]]:
    """Read file, offset and header of every entry without our code."""
    found = []
    for file in sorted(store.glob("dledger-*/data/*")):
        data, at = file.read_bytes(), 0
        while at + HEADER.size <= len(data):
            header = HEADER.unpack_from(data, at)
            if header[MAGIC] != 1 or header[SIZE] <= 0:
                break
            found.append((file, at, header))
            at += header[SIZE]
    return found


def damaged(tmp_path: Path, name: str = WHOLE) -> Path:
    """A copy to damage; the files of its index have 160 MiB each, and nothing in most of them."""
    subprocess.run(["cp", "-a", "--sparse=always", recording(f"layouts/{name}"), tmp_path], check=True)  # noqa: S607
    return tmp_path / "store"


def rules(report: Report) -> list[str]:
    return [finding.rule for finding in report.findings if finding.severity == "violation"]


@pytest.mark.parametrize("name", RECORDED)
def test_what_brokers_left_conforms(name: str) -> None:
    records, clean = RECORDED[name]
    store = recording(f"layouts/{name}")
    assert len(entries(store)) == records
    assert [header[INDEX] for _, _, header in entries(store)] == list(range(records))
    report = check([recording_as_left(f"layouts/{name}")])
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    (source,) = report.sources
    assert (source.records, source.clean) == (records, clean)
    assert report.coverage["log.append"] == records
    assert report.coverage["queue.acknowledge"] > 400
    assert report.coverage["transaction.commit"] > 20


def test_what_a_leader_wrote_alone_may_lack_its_entries() -> None:
    store = recording(f"layouts/{UNCOMMITTED}")
    headers = [header for _, _, header in entries(store)]
    assert {header[TERM] for header in headers} == {1, 2}
    found = dledger_of(store, {})
    assert found is not None
    assert (found.last, found.last_committed) == (headers[-1][INDEX], 358)
    report = check([recording_as_left(f"layouts/{UNCOMMITTED}")])
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    assert report.coverage["log.append"] == len(headers)
    assert report.coverage["queue.append"] - report.coverage["queue.index"] > 10


def test_entries_of_what_another_leader_replaced_are_found() -> None:
    store = recording(f"layouts/{TRUNCATED}")
    assert {header[TERM] for _, _, header in entries(store)} == {1, 2, 3}
    found = [f for f in check([recording_as_left(f"layouts/{TRUNCATED}")]).violations if f.spec == "queue"]
    assert [(f.rule, f.trace) for f in found] == [("queue/entry-points-at-its-message", "SCHEDULE_TOPIC_XXXX/0")]
    assert any("in the middle of the record" in line for line in found[0].story)


def test_a_half_that_was_sent_with_a_delay_is_no_violation() -> None:
    """The broker diverts it to the schedule topic, where its final finds it: no half is there (#n26)."""
    report = check([recording_as_left(f"layouts/{TRUNCATED}")])
    assert not [f for f in report.violations if f.spec == "transaction"]
    assert report.transactions[0].outcomes["not judged"] == 2
    assert any("sent with a delay cannot be judged" in reason for reason in report.sources[0].reasons)


def test_entries_of_queues_point_to_the_record_behind_its_header() -> None:
    store = recording(f"layouts/{WHOLE}")
    places = {int(file.name) + at + HEADER.size: header[BODY] for file, at, header in entries(store)}
    slots = [
        ENTRY.unpack_from(file.read_bytes(), at)
        for file in (store / "consumequeue/orders").glob("*/*")
        for at in range(0, 2000, ENTRY.size)
    ]
    named = [(position, size) for position, size, _ in slots if size > 0]
    assert len(named) > 100
    assert all(places[position] == size for position, size in named)


def test_a_checkpoint_with_a_number_of_a_thousand_digits_tells_nothing(tmp_path: Path) -> None:
    store = damaged(tmp_path)
    (checkpoint,) = store.glob("dledger-*/checkpoint")
    checkpoint.write_text(f"endIndex={'9' * 5000}\ncommittedIndex=1\n")
    assert check([store]).verdict in ("conforms", "inconclusive")


# -- faults ------------------------------------------------------------------------------------------------------------

PARTS = "log/parts-of-the-record-add-up-to-its-size"
KNOWN = "log/record-carries-a-known-magic-number"
CHECKSUM = "log/body-has-its-checksum"
AT = 40  # the entry that is damaged
Fault = Callable[[Path], tuple[Path, int]]
"""Damages a store, and says where that is to be found."""


def of_header(field: int, more: int) -> Fault:
    """A field of the entry's header is another."""

    def fault(store: Path) -> tuple[Path, int]:
        file, at, header = entries(store)[AT]
        fields = list(header)
        fields[field] += more
        data = bytearray(file.read_bytes())
        HEADER.pack_into(data, at, *fields)
        file.write_bytes(data)
        return file, at

    return fault


def of_record(offset: int) -> Fault:
    """One byte of the record is another, `offset` bytes behind its header."""

    def fault(store: Path) -> tuple[Path, int]:
        file, at, _ = entries(store)[AT]
        data = bytearray(file.read_bytes())
        data[at + HEADER.size + offset] ^= 1
        file.write_bytes(data)
        return file, at

    return fault


def zeroed(store: Path) -> tuple[Path, int]:
    file, at, header = entries(store)[AT]
    data = bytearray(file.read_bytes())
    data[at : at + header[SIZE]] = bytes(header[SIZE])
    file.write_bytes(data)
    return file, at


def without_its_blank(store: Path) -> tuple[Path, int]:
    first, *_ = sorted((store / "dledger-n0/data").iterdir())
    end = max(at + header[SIZE] for file, at, header in entries(store) if file == first)
    data = bytearray(first.read_bytes())
    data[end : end + 4] = bytes(4)
    first.write_bytes(data)
    return first, end


FAULTS: dict[str, tuple[Fault, str]] = {
    "another magic number of the entry": (of_header(MAGIC, 1), PARTS),
    "another size of the entry": (of_header(SIZE, 4), PARTS),
    "another position": (of_header(POSITION, 8), PARTS),
    "another size of the record": (of_header(BODY, -1), PARTS),
    "another index": (of_header(INDEX, 7), PARTS),
    "an index that comes twice": (of_header(INDEX, -1), PARTS),
    "a term that falls": (of_header(TERM, -1), PARTS),
    "another magic number of the record": (of_record(7), KNOWN),
    "a byte of the body": (of_record(100), CHECKSUM),
    "an entry of zeros": (zeroed, KNOWN),
    "no blank at the end of a file": (without_its_blank, "log/file-that-is-full-ends-in-a-blank"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_at_its_place(fault: str, tmp_path: Path) -> None:
    damage, rule = FAULTS[fault]
    store = damaged(tmp_path)
    file, offset = damage(store)
    report = check([store])
    assert report.verdict == "departs"
    found = next(finding for finding in report.findings if finding.severity == "violation")
    assert found.rule == rule, rules(report)
    assert (found.where.file, found.where.offset) == (str(file.relative_to(store)), offset)
    assert ("the entry's header has magic" in found.message) == (rule in (PARTS, KNOWN))
    assert len(rules(report)) == 1


# -- which log it is, and what is refused ------------------------------------------------------------------------------


def test_a_log_that_was_not_known_to_be_committed_may_be_ahead_of_its_queues(tmp_path: Path) -> None:
    store = damaged(tmp_path)
    (store / "dledger-n0/checkpoint").write_text("committedIndex=990\nendIndex=1000\n")
    report = check([store])
    assert report.verdict == "conforms"
    assert not report.sources[0].clean
    assert any("has entry 1,000 as the last one, and 990 as committed" in note for note in report.sources[0].notes)


@pytest.mark.parametrize("with_folder", [False, True])
def test_a_dledger_log_without_its_entries_is_reported_of_as_what_it_is(tmp_path: Path, *, with_folder: bool) -> None:
    store = tmp_path / "store"
    (store / "consumequeue" / "orders" / "0").mkdir(parents=True)
    (store / "config").mkdir()
    (store / "dledger-n0" / ("data" if with_folder else "index")).mkdir(parents=True)
    with pytest.raises(Unreadable, match=r"the DLedger log in dledger-n0/ has no file in dledger-n0/data/"):
        open_store(store)


def test_two_dledger_logs_in_one_store_are_reported_apart_by_the_settings(tmp_path: Path) -> None:
    store = damaged(tmp_path)
    (store / "dledger-n0").rename(store / "dledger-n1")
    other = store / "dledger-n0/data"
    other.mkdir(parents=True)
    (other / f"{0:020d}").write_bytes(bytes(1 << 16))
    report = check([store])
    assert report.verdict == "unreadable"
    assert "broker.conf whose dLegerSelfId names one of them" in report.sources[0].reasons[0]
    found = dledger_of(store, {"dLegerSelfId": "n1"})
    assert found is not None
    assert (found.name, found.settled) == ("dledger-n1", True)


def test_settings_that_name_the_folder_of_a_plain_log_are_no_matter(tmp_path: Path) -> None:
    """A broker makes no commitlog/ next to its DLedger log, whatever its settings name."""
    store = damaged(tmp_path)
    (tmp_path / "broker.conf").write_text(f"enableDLegerCommitLog=true\nstorePathCommitLog={store}/commitlog\n")
    report = check([tmp_path])
    assert report.verdict == "conforms"
    assert report.coverage["log.append"] == RECORDED[WHOLE][0]


def body_changed(store: Path) -> None:
    """Another byte in the body of an entry, with the checksum that it makes."""
    of_record(100)(store)
    file, at, _ = entries(store)[AT]
    data = bytearray(file.read_bytes())
    begin = at + HEADER.size + 88  # of a record with hosts of IPv4
    (length,) = struct.unpack_from(">i", data, begin - 4)
    struct.pack_into(">I", data, at + HEADER.size + 8, zlib.crc32(data[begin : begin + length]) & 0x7FFFFFFF)
    file.write_bytes(data)


@pytest.mark.parametrize(("committed", "verdict"), [(AT - 1, "inconclusive"), (AT, "departs")])
def test_replicas_may_part_where_not_both_had_committed(committed: int, verdict: str, tmp_path: Path) -> None:
    slave = damaged(tmp_path)
    body_changed(slave)
    (slave / "dledger-n0/checkpoint").write_text(f"committedIndex={committed}\nendIndex=1000\n")
    (pair,) = compare(recording(f"layouts/{WHOLE}"), [slave]).pairs
    assert pair.verdict == verdict, pair
    file, at, _ = entries(slave)[AT]
    assert pair.fork is not None
    assert (pair.fork.position, pair.fork.there[1].what) == (int(file.name) + at, "a record")
    assert any("what a leader wrote alone, the next one replaces" in reason for reason in pair.reasons) == (
        verdict == "inconclusive"
    )


@pytest.mark.parametrize("written", [470, 589])
def test_the_last_entry_of_a_log_that_was_killed_may_be_half_written(written: int, tmp_path: Path) -> None:
    played = PlayedStore(recording(f"layouts/{UNCOMMITTED}"), tmp_path / "store")
    records = played.records()
    last = records[len(records) // 2]
    assert records[len(records) // 2 + 1] - last == 655
    played.append(last + written)
    played.dispatch(last)
    shutil.rmtree(tmp_path / "store/config")  # it is of the end of the recording
    report = check([tmp_path / "store"], jobs=1)
    assert report.verdict == "conforms", report.findings
    assert f"the log ends at {last - 48:,}; the last record is torn: the broker drops it at its next start" in (
        report.sources[0].notes
    )
