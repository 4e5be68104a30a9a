"""Tiered storage in a folder: entries and messages that the uploader copied there, and the metadata of its files."""

import json
import re
import shutil
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from gapless import check
from gapless.traces.report.values import Report
from gapless.traces.sources.rocketmq.layouts import copied_queue
from gapless.traces.sources.rocketmq.layouts.copied_records import (
    CopiedEntries,
    TieredMessages,
    messages_between,
    repeated,
)
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import LogFile, Maps, Queue
from gapless.traces.sources.rocketmq.store.opening import open_store
from tests.support.command_line import gapless
from tests.support.night import by_day
from tests.support.rocketmq.recordings import RECORDINGS, copy_of, recording, recording_as_left

RECORDED = [path.name.removesuffix(".tar.xz") for path in sorted((RECORDINGS / "layouts").glob("tiered_*.tar.xz"))]
WHOLE, ROLLED, EXPIRED = (f"layouts/tiered_{name}_5.5.0" for name in ("lives", "rolled", "expired"))
ENTRY = struct.Struct(">qiq")  # position, size, tag
METADATA = "config/tieredStoreMetadata.json"
QUEUE = "orders/0"
AT = 35  # the entry that is about to be damaged: in the second file of its queue
LOST = {  # messages that brokers lost there: the queue, the first and the last
    "tiered_rolled_5.5.0": ("payments/1", 45, 49),
    "tiered_killed_5.3.3": ("payments/1", 44, 59),
}


# -- a reader of its own -----------------------------------------------------------------------------------------------


def metadata(store: Path) -> dict[str, dict[str, dict[str, dict[str, int]]]]:
    output = re.sub(r"([{,]\s*)(\d+)(?=\s*:)", r'\1"\2"', (store / METADATA).read_text())
    found: dict[str, dict[str, dict[str, dict[str, int]]]] = json.loads(output)
    return found


def files(store: Path, kind: str, queue: str = QUEUE) -> list[tuple[Path, int, int]]:
    """The files of a queue, each with the place where it begins, and how much is committed."""
    table = metadata(store)["commitLogFileSegmentTable" if kind == "COMMIT_LOG" else "consumeQueueFileSegmentTable"]
    (folder,) = (store / "tieredstore").glob(f"*/lab-a/{queue}/{kind}")
    by_base = {int(path.name[8:]): path for path in folder.iterdir()}
    listed = sorted((one["baseOffset"], one["size"]) for one in table[f"lab-a/{queue}"].values())
    return [(by_base[base], base, size) for base, size in listed]


def entries(store: Path, queue: str = QUEUE) -> Iterator[tuple[int, int, int, int]]:
    """Number, position, size and tag code of every entry that is committed."""
    for path, base, size in files(store, "CONSUME_QUEUE", queue):
        for at in range(0, size, ENTRY.size):
            yield (base + at) // ENTRY.size, *ENTRY.unpack_from(path.read_bytes(), at)


def message(store: Path, number: int) -> tuple[Path, int]:
    at = next(position for found, position, *_ in entries(store) if found == number)
    path, base, _ = max((one for one in files(store, "COMMIT_LOG") if one[1] <= at), key=lambda one: one[1])
    return path, at - base


def entry(store: Path, number: int) -> tuple[Path, int]:
    at = number * ENTRY.size
    path, base, _ = max((one for one in files(store, "CONSUME_QUEUE") if one[1] <= at), key=lambda one: one[1])
    return path, at - base


def rules(report: Report) -> list[str]:
    return [finding.rule for finding in report.findings if finding.severity == "violation"]


def queues(store: Path) -> list[str]:
    return sorted(path.removeprefix("lab-a/") for path in metadata(store)["consumeQueueFileSegmentTable"])


# -- what brokers left -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECORDED)
def test_what_brokers_uploaded_is_followed_to_their_own_log(name: str) -> None:
    store = recording(f"layouts/{name}")
    report = check([recording_as_left(f"layouts/{name}")])
    count = sum(1 for queue in queues(store) for _ in entries(store, queue))
    if name in LOST:
        queue, number, last = LOST[name]
        (found,) = report.findings
        assert (found.rule, found.trace) == ("tiered/tiered-message-has-the-number-of-its-entry", queue)
        assert f"tiered entry {number}," in found.message
        assert f"; messages {number} to {last} were never uploaded, " in found.message
        return
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    assert report.coverage["tiered.find_entry"] + report.coverage["tiered.outlive"] == count > 200
    kept = [*(store / "tieredstore").glob("*/*/*/*/CO*/*")]
    assert report.coverage["tiered.find_log_file"] + report.coverage["tiered.find_queue_file"] == len(kept) > 20


def test_messages_there_are_those_of_the_log_but_for_their_place() -> None:
    """Read without our code."""
    store = recording(WHOLE)
    logs = {int(path.name): path.read_bytes() for path in (store / "commitlog").iterdir()}
    full = len(next(iter(logs.values())))
    slots = (store / "consumequeue" / QUEUE / f"{0:020d}").read_bytes()
    for number, position, size, tag in entries(store):
        path, at = message(store, number)
        uploaded = path.read_bytes()[at : at + size]
        place, length, code = ENTRY.unpack_from(slots, number * ENTRY.size)
        own = logs[place - place % full][place % full : place % full + length]
        assert (length, code, uploaded[:28], uploaded[36:]) == (size, tag, own[:28], own[36:])
        assert struct.unpack_from(">qq", uploaded, 20) == (number, position)


def test_entries_of_messages_that_expired_are_old() -> None:
    store = recording(EXPIRED)
    report = check([recording_as_left(EXPIRED)])
    old = sum(
        position < files(store, "COMMIT_LOG", queue)[0][1]
        for queue in queues(store)
        for _, position, *_ in entries(store, queue)
    )
    assert report.coverage["tiered.outlive"] == old > 0


# -- faults ------------------------------------------------------------------------------------------------------------

Place = tuple[Path, int]
Fault = Callable[[Path], Place]
"""Damages a store, and says where that is to be found."""


def written(path: Path, at: int, data: bytes) -> None:
    old = path.read_bytes()
    path.write_bytes(old[:at] + data + old[at + len(data) :])


def of_message(offset: int, data: bytes | None = None, *, at: int | None = None) -> Fault:
    """Bytes of the message are others; `at`: the byte of it at which that is found."""

    def fault(store: Path) -> Place:
        path, place = message(store, AT)
        wrong = data or bytes([path.read_bytes()[place + offset] ^ 4])
        written(path, place + offset, wrong)
        return path, place + (offset if at is None else at)

    return fault


def of_entry(position: int = 0, size: int = 0, tag: int = 0) -> Fault:
    def fault(store: Path) -> Place:
        path, at = entry(store, AT)
        was = ENTRY.unpack_from(path.read_bytes(), at)
        written(path, at, ENTRY.pack(was[0] + position, was[1] + size, was[2] + tag))
        return path, at

    return fault


def without_its_message(store: Path) -> Place:
    path, at = message(store, AT)
    (size,) = struct.unpack_from(">i", path.read_bytes(), at)
    written(path, at, bytes(size))
    return entry(store, AT)


def zeros(store: Path) -> Place:
    written(*entry(store, AT), bytes(ENTRY.size))
    return entry(store, AT)


def the_next_message(store: Path) -> Place:
    path, at = entry(store, AT)
    written(path, at, path.read_bytes()[at + ENTRY.size : at + 2 * ENTRY.size])
    return message(store, AT + 1)


def another_size(table: str, more: int, which: int) -> Fault:
    """The metadata has another size for a file."""

    def fault(store: Path) -> Place:
        content = metadata(store)
        segments = content[f"{table}FileSegmentTable"][f"lab-a/{QUEUE}"]
        segment = sorted(segments.values(), key=lambda one: one["baseOffset"])[which]
        segment["size"] += more
        (store / METADATA).write_text(json.dumps(content))
        kind = "COMMIT_LOG" if table == "commitLog" else "CONSUME_QUEUE"
        path, *_ = files(store, kind)[which if more > 0 else which + 1]
        return path, path.stat().st_size if more > 0 else 0

    return fault


def unlisted_file(store: Path) -> Place:
    """A file between others is missing in the metadata."""
    content = metadata(store)
    segments = content["consumeQueueFileSegmentTable"][f"lab-a/{QUEUE}"]
    del segments["600"]
    (store / METADATA).write_text(json.dumps(content))
    return files(store, "CONSUME_QUEUE")[1][0], 0


def gone(store: Path) -> Place:
    path, *_ = files(store, "COMMIT_LOG")[1]
    path.unlink()
    return path, 0


def swapped(store: Path) -> Place:
    """Two queues have changed places, with their metadata."""
    (one,) = (store / "tieredstore").glob("*/lab-a/orders/0")
    other = one.with_name("1")
    one.rename(one.with_name("x"))
    other.rename(one)
    one.with_name("x").rename(other)
    content = metadata(store)
    for table in ("commitLogFileSegmentTable", "consumeQueueFileSegmentTable"):
        of = content[table]
        of["lab-a/orders/0"], of["lab-a/orders/1"] = of["lab-a/orders/1"], of["lab-a/orders/0"]
    (store / METADATA).write_text(json.dumps(content))
    return message(store, 0)


def damaged_and_nowhere_else(store: Path) -> Place:
    """A body is damaged, and the broker's own queue is gone."""
    path, at = message(store, AT)
    written(path, at + 90, bytes([path.read_bytes()[at + 90] ^ 4]))
    shutil.rmtree(store / "consumequeue" / QUEUE)
    return path, at


FAULTS: dict[str, tuple[Fault, str]] = {
    "a byte of a body": (of_message(90), "tiered-message-is-the-brokers-own"),
    "a byte of a body without another copy": (damaged_and_nowhere_else, "tiered-body-has-its-checksum"),
    "its birth": (of_message(41), "tiered-message-is-the-brokers-own"),
    "its magic number": (of_message(4, at=0), "tiered-message-is-whole"),
    "its size": (of_message(3, at=0), "tiered-message-is-whole"),
    "its queue": (of_message(15, at=0), "tiered-message-is-of-its-queue"),
    "its number": (of_message(27, at=0), "tiered-message-has-the-number-of-its-entry"),
    "its place": (of_message(35, at=0), "tiered-message-names-its-place"),
    "no message": (without_its_message, "tiered-entry-names-a-message"),
    "an entry into a message": (of_entry(position=7, size=-7), "tiered-entry-names-a-message"),
    "an entry of the next message": (the_next_message, "tiered-message-has-the-number-of-its-entry"),
    "an entry of an older message": (of_entry(position=-1), "tiered-messages-lie-in-the-order-of-their-entries"),
    "an entry of zeros": (zeros, "tiered-messages-lie-in-the-order-of-their-entries"),
    "another size": (of_entry(size=1), "tiered-entry-has-the-size-of-its-message"),
    "another tag": (of_entry(tag=1), "tiered-entry-has-the-tag-code-of-its-message"),
    "entries listed beyond the end": (
        another_size("consumeQueue", 1000, -1),
        "tiered-queue-file-holds-what-its-metadata-says",
    ),
    "bytes listed beyond the end": (
        another_size("commitLog", 30_000, -1),
        "tiered-log-file-holds-what-its-metadata-says",
    ),
    "too few entries listed": (
        another_size("consumeQueue", -20, 0),
        "tiered-queue-file-begins-where-the-one-before-it-ends",
    ),
    "too few bytes listed": (another_size("commitLog", -1, 0), "tiered-log-file-begins-where-the-one-before-it-ends"),
    "a file that is not listed": (unlisted_file, "tiered-queue-file-begins-where-the-one-before-it-ends"),
    "a file that is gone": (gone, "tiered-log-file-holds-what-its-metadata-says"),
    "two queues that changed places": (swapped, "tiered-message-is-of-its-queue"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_at_its_place(fault: str, tmp_path: Path) -> None:
    store = copy_of(WHOLE, tmp_path)
    damage, rule = FAULTS[fault]
    file, offset = damage(store)
    report = check([store.parent])
    assert report.verdict == "departs"
    found = next(finding for finding in report.findings if finding.rule == f"tiered/{rule}")
    assert (found.where.file, found.where.offset) == (str(file.relative_to(store)), offset)
    assert found.trace == QUEUE


def test_a_departure_is_explained_and_in_json(tmp_path: Path) -> None:
    store = copy_of(WHOLE, tmp_path)
    of_entry(tag=1)(store)
    result = gapless("explain", str(store.parent), "--trace", QUEUE)
    assert "the tiered queue orders/0 departs at tieredstore/" in result.stdout
    assert f"tiered entry {AT} has tag" in gapless("check", str(store.parent)).stdout
    report = json.loads(gapless("check", str(store.parent), "--json", "-").stdout)
    assert [finding["spec"] for finding in report["findings"]] == ["tiered"]


# -- what must be tolerated --------------------------------------------------------------------------------------------


def notes(report: Report) -> str:
    return "\n".join(report.sources[0].notes)


def reasons(report: Report) -> str:
    return "\n".join(report.sources[0].reasons)


def test_what_was_not_committed_is_not_judged(tmp_path: Path) -> None:
    store = copy_of(WHOLE, tmp_path)
    for kind in ("COMMIT_LOG", "CONSUME_QUEUE"):
        path, *_ = files(store, kind)[-1]
        path.write_bytes(path.read_bytes() + b"nonsense" * 12)
    assert check([store.parent]).verdict == "conforms"


def test_messages_that_no_entry_names_are_left_alone(tmp_path: Path) -> None:
    """A broker killed before it committed entries uploads their messages again, after the torn part."""
    store = copy_of(WHOLE, tmp_path)
    path, base, size = files(store, "COMMIT_LOG")[-1]
    data, last = path.read_bytes(), [one for one in entries(store) if one[1] >= base]
    moved = data[last[0][1] - base : last[1][1] - base + 40]
    added = len(moved)
    for number, position, length, _ in last:
        at = position - base + added
        written(*entry(store, number), struct.pack(">q", position + added))
        record = bytearray(data[position - base : position - base + length])
        struct.pack_into(">q", record, 28, base + at)
        moved += bytes(record)
    path.write_bytes(data[: last[0][1] - base] + moved)
    content = metadata(store)
    content["commitLogFileSegmentTable"][f"lab-a/{QUEUE}"][str(base)]["size"] = size + added
    (store / METADATA).write_text(json.dumps(content))
    report = check([store.parent])
    assert report.verdict == "conforms", report.model_dump_json(indent=1)


def of_long_ago(store: Path, count: int) -> None:
    """The metadata has the messages in the oldest files for old enough to expire."""
    content = metadata(store)
    for table in ("commitLogFileSegmentTable", "consumeQueueFileSegmentTable"):
        segments = sorted(content[table][f"lab-a/{QUEUE}"].values(), key=lambda one: one["baseOffset"])
        for segment in segments[:count]:
            segment["endTimestamp"] -= 80 * 3_600_000
    (store / METADATA).write_text(json.dumps(content))


def without_its_oldest(room: Path, count: int, *, expired: bool) -> Report:
    """A store whose broker was killed, and whose oldest files of one queue are gone."""
    store = copy_of(WHOLE, room)
    (store / "abort").touch()
    for kind in ("COMMIT_LOG", "CONSUME_QUEUE"):
        for path, *_ in files(store, kind)[:count]:
            path.unlink()
    of_long_ago(store, count if expired else 0)
    return check([store.parent])


def test_a_broker_that_was_killed_while_it_deleted_is_no_violation(tmp_path: Path) -> None:
    report = without_its_oldest(tmp_path, 1, expired=True)
    assert not rules(report)
    assert not any("tiered" in reason for reason in report.sources[0].reasons)
    assert "its oldest file, tieredstore/" in notes(report)


@pytest.mark.parametrize(("count", "expired", "why"), [(1, False, "so young"), (2, True, "one by one")])
def test_a_file_that_cannot_have_expired_is_not_reported_to_have(
    count: int, why: str, tmp_path: Path, *, expired: bool
) -> None:
    """A broker deletes one file, then its metadata, then the next: what it leaves of that is one, of old messages."""
    report = without_its_oldest(tmp_path, count, expired=expired)
    assert not rules(report)
    assert report.verdict == "inconclusive"
    assert any(why in reason and "their messages are lost" in reason for reason in report.sources[0].reasons)


def test_files_that_all_hold_nothing_are_not_reported_to_have_expired(tmp_path: Path) -> None:
    store = copy_of("layouts/tiered_kill_clean_5.5.0", tmp_path)
    for file, _, _ in files(store, "CONSUME_QUEUE"):
        file.write_bytes(b"")
    report = check([store.parent])
    assert report.verdict == "inconclusive", report.model_dump_json(indent=1)
    assert "expired all together, or are lost" in report.sources[0].reasons[0]


def test_where_no_message_lies_nothing_is_stated_of_its_body() -> None:
    """Not even where the rule that it does is left out."""
    report = check([recording_as_left("layouts/tiered_rolled_5.5.0")], only=["tiered/tiered-body-has-its-checksum"])
    assert not report.violations


def test_files_lie_where_the_settings_say(tmp_path: Path) -> None:
    store = copy_of(WHOLE, tmp_path)
    (store / "tieredstore").rename(tmp_path / "elsewhere")
    gone = check([store.parent])
    assert gone.verdict == "inconclusive"
    assert "tiered storage is not judged: its files are not in tieredstore/;" in reasons(gone)
    with (store.parent / "broker.conf").open("a") as conf:
        conf.write(f"\ntieredStoreFilePath={tmp_path / 'elsewhere'}\n")
    report = check([store.parent])
    assert report.verdict == "conforms"
    assert report.coverage["tiered.find_entry"] > 500


def test_a_provider_without_files_is_named(tmp_path: Path) -> None:
    store = copy_of(WHOLE, tmp_path)
    with (store.parent / "broker.conf").open("a") as conf:
        conf.write("\ntieredBackendServiceProvider=org.apache.rocketmq.tieredstore.provider.MemoryFileSegment\n")
    assert "which keeps no files here" in notes(check([store.parent]))


NO_METADATA = (
    "", "{", "[]", '{"commitLogFileSegmentTable": 5}', '{"consumeQueueFileSegmentTable": {"a/b/0": {"0": {}}}}',
)  # fmt: skip


@pytest.mark.parametrize("content", NO_METADATA)
def test_metadata_that_are_unreadable_is_no_conformance(content: str, tmp_path: Path) -> None:
    store = copy_of(WHOLE, tmp_path)
    (store / METADATA).write_text(content)
    (store / f"{METADATA}.bak").unlink(missing_ok=True)
    report = check([store.parent])
    assert report.verdict == "inconclusive"
    assert "tiered storage is not judged: " in reasons(report)


@pytest.mark.parametrize("content", [None, *NO_METADATA])
def test_its_older_version_is_read_where_the_broker_would(content: str | None, tmp_path: Path) -> None:
    """It does so where the file is missing, empty or broken (ConfigManager.load)."""
    store = copy_of(WHOLE, tmp_path)
    (store / f"{METADATA}.bak").write_bytes((store / METADATA).read_bytes())
    (store / METADATA).unlink()
    if content is not None:
        (store / METADATA).write_text(content)
    report = check([store.parent])
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    assert report.coverage["tiered.find_entry"] > 500
    assert "tieredStoreMetadata.json.bak is used, as the broker would do" in notes(report)


def test_without_its_metadata_it_is_no_conformance(tmp_path: Path) -> None:
    store = copy_of(WHOLE, tmp_path)
    for path in (store / METADATA, store / f"{METADATA}.bak"):
        path.unlink(missing_ok=True)
    report = check([store.parent])
    assert report.verdict == "inconclusive"
    assert "and neither config/tieredStoreMetadata.json nor its .bak is there" in reasons(report)


def forgets(content: dict[str, dict[str, dict[str, object]]]) -> None:
    """All of one queue."""
    for table in ("commitLogFileSegmentTable", "consumeQueueFileSegmentTable"):
        del content[table][f"lab-a/{QUEUE}"]


def forgets_the_last(content: dict[str, dict[str, dict[str, object]]]) -> None:
    """The last files of a queue."""
    for table in ("commitLogFileSegmentTable", "consumeQueueFileSegmentTable"):
        segments = content[table][f"lab-a/{QUEUE}"]
        del segments[max(segments, key=int)]


@pytest.mark.parametrize("left_out", [forgets, forgets_the_last, dict.clear])
def test_metadata_that_does_not_tell_of_files_is_no_conformance(
    left_out: Callable[[dict[str, dict[str, dict[str, object]]]], None], tmp_path: Path
) -> None:
    store = copy_of(WHOLE, tmp_path)
    content = json.loads(json.dumps(metadata(store)))
    left_out(content)
    (store / METADATA).write_text(json.dumps(content))
    report = check([store.parent])
    assert not rules(report)
    assert report.verdict == "inconclusive"
    assert "that its metadata does not list, the first tieredstore/" in reasons(report)


def test_a_copy_of_a_running_broker_is_not_judged_there() -> None:
    report = check([recording_as_left(WHOLE)], copied=True)
    assert "its files are of different moments" in notes(report)


def test_what_the_log_has_wrong_is_reported_once(tmp_path: Path) -> None:
    store = copy_of(WHOLE, tmp_path)
    slots = (store / "consumequeue" / QUEUE / f"{0:020d}").read_bytes()
    place, *_ = ENTRY.unpack_from(slots, AT * ENTRY.size)
    (log,) = (path for path in (store / "commitlog").iterdir() if 0 <= place - int(path.name) < path.stat().st_size)
    at = place - int(log.name) + 90
    written(log, at, bytes([log.read_bytes()[at] ^ 4]))
    assert all(rule.startswith("log/") for rule in rules(check([store.parent])))


def test_what_both_logs_have_wrong_is_reported_of_this_one_where_a_rule_of_the_other_is_left_out(
    tmp_path: Path,
) -> None:
    """A message of the log itself is whole if that was judged, and not if a rule of the log was left out."""
    store = copy_of(WHOLE, tmp_path)
    place, *_ = ENTRY.unpack_from((store / "consumequeue" / QUEUE / f"{0:020d}").read_bytes(), AT * ENTRY.size)
    (log,) = (path for path in (store / "commitlog").iterdir() if 0 <= place - int(path.name) < path.stat().st_size)
    for path, at in ((log, place - int(log.name)), message(store, AT)):
        written(path, at + 90, bytes([path.read_bytes()[at + 90] ^ 4]))
    found = check([store.parent], ignore=["log/body-has-its-checksum"])
    assert rules(found) == ["tiered/tiered-body-has-its-checksum"]


@pytest.mark.parametrize("fault", ["", "another body"])
def test_messages_that_are_the_logs_own_are_not_read_as_records_again(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, read = copy_of(WHOLE, tmp_path), []
    if fault == "another body":
        of_message(90)(store)

    def between(store: StoreDirectory, files: Sequence[LogFile], queue: Queue, *more: Any) -> TieredMessages:
        read.append(queue)
        return messages_between(store, files, queue, *more)

    monkeypatch.setattr(copied_queue, "messages_between", between)
    check([store.parent])
    assert (("orders", 0) in read) == bool(fault)


@pytest.mark.parametrize(
    ("queue", "more", "same"),
    [
        (("orders", 0), {}, True),
        (("another", 0), {}, False),  # as of a light queue: its messages are those of others
        (("orders", 1), {}, False),
        (("orders", 0), {"number": 1}, False),
        (("orders", 0), {"size": -1}, False),
        (("orders", 0), {"claimed": 1}, False),
    ],
)
def test_a_message_is_the_logs_own_if_it_is_what_is_expected_of_it(
    queue: Queue,
    more: dict[str, int],
    same: bool,  # noqa: FBT001 - of each, one
    tmp_path: Path,
) -> None:
    opened = open_store(copy_of(WHOLE, tmp_path))
    number, position, size, tag = next(entries(Path(opened.path)))
    path, base, _ = files(Path(opened.path), "COMMIT_LOG")[0]
    place, *_ = ENTRY.unpack_from((Path(opened.path) / "consumequeue" / QUEUE / f"{0:020d}").read_bytes(), 0)
    theirs = LogFile(str(path), base + more.pop("claimed", 0), path.stat().st_size)
    fields = {"position": theirs.base + position - base, "size": size, "number": number, "tag": tag}
    row = {name: np.array([value + more.get(name, 0)]) for name, value in fields.items()}
    found = repeated([theirs], CopiedEntries(**row), queue, opened.files, np.array([place]), Maps())
    assert (found is not None) == same


def test_messages_that_a_power_loss_took_from_the_log_alone_are_no_violation(tmp_path: Path) -> None:
    """Their numbers were given again: the log has other messages under them."""
    store = copy_of(WHOLE, tmp_path)
    path, at = message(store, AT)
    for field in (40, 56):  # when it was born, and stored
        (time,) = struct.unpack_from(">q", path.read_bytes(), at + field)
        written(path, at + field, struct.pack(">q", time - 5000))
    report = check([store.parent])
    assert not rules(report)
    assert report.verdict == "inconclusive"
    assert any("created again, with the same numbers" in reason for reason in report.sources[0].reasons)


def test_two_clusters_of_one_folder_are_reported_apart_by_the_settings(tmp_path: Path) -> None:
    store = copy_of(WHOLE, tmp_path)
    (cluster,) = (store / "tieredstore").iterdir()
    shutil.copytree(cluster, cluster.with_name("other"))
    assert check([store.parent]).coverage["tiered.find_entry"] > 500
    (store.parent / "broker.conf").unlink()
    assert "a broker.conf with brokerClusterName selects one" in reasons(check([store.parent]))


@pytest.mark.parametrize("seed", by_day(range(40)))
def test_damage_at_random_is_a_verdict_and_no_traceback(seed: int, tmp_path: Path) -> None:
    store, random = copy_of(EXPIRED, tmp_path), Random(seed)
    there = [path for path in (store / "tieredstore").rglob("*") if path.is_file()]
    for path in random.sample([*there, *[store / METADATA] * 3], 3):
        data = bytearray(path.read_bytes())
        low = random.randrange(len(data) + 1)
        high = min(len(data), low + random.choice((1, 20, 300)))
        data[low:high] = random.choice((b"", bytes(high - low), random.randbytes(high - low), random.randbytes(7)))
        path.write_bytes(data)
    report = check([store.parent])
    assert report.verdict in {"conforms", "departs", "inconclusive"}
    assert all(rule.startswith("tiered/") for rule in rules(report))
