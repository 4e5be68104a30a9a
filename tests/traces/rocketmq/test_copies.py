"""Stores that were copied while their broker ran: what such a copy cannot promise is no violation."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from gapless import Report, check
from gapless.traces.sources.rocketmq.layouts.hash_index.index_files import index_in
from gapless.traces.sources.rocketmq.store.opening import open_store
from tests.support.rocketmq.killed_store import killed
from tests.support.rocketmq.recordings import recording, recording_as_left
from tests.support.rocketmq.stores import log_files, read_log

COPIES = {"one_moment": "one", "queues_younger": "queues younger", "queues_older": "queues older"}
POINTS = "queue/entry-points-at-its-message"


@pytest.fixture(params=COPIES)
def copied(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of a running broker's store, without what its clients say."""
    name: str = request.param
    return shutil.copytree(recording_as_left("lab/copies") / name, tmp_path / name)


def with_clients(name: str, *, copied: bool = False) -> Report:
    """Check the same copy with the whole client log, which continues long after the copy."""
    folder = recording_as_left("lab/copies")
    return check(folder / name, config=folder / "broker.conf", client=folder / "client.ndjson", copied=copied)


def test_the_report_says_what_it_looks_like(copied: Path) -> None:
    report = check(copied)
    assert report.verdict == ("inconclusive" if copied.name == "queues_older" else "conforms")
    assert report.sources[0].moments == COPIES[copied.name]
    assert any(" seem" in note and "copy" in note for note in report.sources[0].notes)


@pytest.mark.parametrize(("name", "looks"), [("normal", "stopped"), ("unclean", "one")])
def test_so_do_those_of_brokers_that_stopped(name: str, looks: str) -> None:
    assert check(recording(name)).sources[0].moments == looks


def test_queues_before_and_behind_the_log_are_of_several_moments(tmp_path: Path) -> None:
    store = shutil.copytree(recording_as_left("lab/copies") / "queues_younger", tmp_path / "store")
    forget(store, "orders/1", 3)
    report = check(store)
    assert (report.verdict, report.sources[0].moments) == ("inconclusive", "several")
    (reason,) = report.sources[0].reasons
    assert "3 messages of orders/1 wait" in reason
    assert "(--copied says so)" in reason
    assert check(store, copied=True).verdict == "conforms"


@pytest.mark.parametrize("into", [0, 100])
def test_a_log_file_that_was_copied_before_the_next_one_was_written_is_no_violation(into: int, tmp_path: Path) -> None:
    """It was copied while it was filled, between two records or within one, and the next file much later."""
    store = shutil.copytree(recording("kill9"), tmp_path / "store")
    (store / "abort").write_text("1")
    file = log_files(store)[1]
    at = next(record for record in read_log(store) if record.position > int(file.name) + 600_000).position + into
    data = file.read_bytes()[: at - int(file.name)]
    file.write_bytes(data.ljust(file.stat().st_size, b"\0"))
    (found,) = (one for one in check(store).violations if one.trace == "commitlog")
    assert "unless this is a copy whose next file is younger: --copied says so" in found.message
    report = check(store, copied=True)
    assert (report.verdict, report.violations) == ("inconclusive", [])
    assert any("legal in a copy whose files are of different moments" in why for why in report.sources[0].reasons)


def test_queues_that_were_copied_after_their_first_files_expired_are_no_violation(tmp_path: Path) -> None:
    """And the log before that, so that it still has the messages of these entries; a hole behind them is none."""
    store = shutil.copytree(recording("kill9"), tmp_path / "store")
    (store / "abort").write_text("1")
    first, second = sorted((store / "consumequeue/RMQ_SYS_TRANS_HALF_TOPIC/0").iterdir())
    first.unlink()
    assert check(store).verdict == "departs"
    report = check(store, copied=True)
    assert (report.verdict, report.violations) == ("inconclusive", [])
    assert any("before the first file of their queue" in reason for reason in report.sources[0].reasons)
    second.write_bytes(second.read_bytes()[:200] + bytes(20) + second.read_bytes()[220:])
    other = next((store / "consumequeue/orders/1").iterdir())
    other.write_bytes(other.read_bytes()[:200] + bytes(20) + other.read_bytes()[220:])
    (missing,) = check(store, copied=True).violations
    assert (missing.rule, missing.trace) == ("queue/no-entry-before-it-is-missing", "orders/1")


def test_files_that_expired_while_others_were_copied_are_no_violation(tmp_path: Path) -> None:
    """They may be copied in any order: of those that expired, some are in the copy, and some are not."""
    store = shutil.copytree(recording("midlife"), tmp_path / "store")
    (store / "abort").write_text("1")
    log_files(store)[1].unlink()
    (gap,) = (one for one in check(store).violations if one.trace == "commitlog")
    assert "unless this is a copy whose oldest files expired while others were copied: --copied says so" in gap.message
    report = check(store, copied=True)
    assert (report.verdict, report.violations) == ("inconclusive", [])
    (reason,) = report.sources[0].reasons
    assert reason.startswith("1 log file left out, since the one before 1,310,720 is missing")
    flipped = log_files(store)[2]
    data = bytearray(flipped.read_bytes())
    record = next(one for one in read_log(store) if one.position > int(flipped.name) and len(one.body) > 20)
    data[data.index(record.body)] ^= 1
    flipped.write_bytes(data)
    assert check(store, copied=True).verdict == "departs"


def forget(store: Path, queue: str, count: int) -> None:
    """Take the last entries that lie within the log out of a queue, and all behind them."""
    end = read_log(store)[-1].end
    path = next((store / "consumequeue" / queue).iterdir())
    data = path.read_bytes()
    slots = [data[at : at + 20] for at in range(0, len(data), 20)]
    inside = [slot for slot in slots if any(slot) and int.from_bytes(slot[:8], "big") < end]
    path.write_bytes(b"".join(inside[:-count]).ljust(len(data), b"\0"))


@pytest.mark.parametrize("name", COPIES)
def test_clients_who_know_more_than_the_copy_are_no_violation(name: str) -> None:
    report = with_clients(name)
    assert (report.verdict, report.violations) == ("inconclusive", [])
    older = [reason for reason in report.sources[0].reasons if "older than its client log" in reason]
    assert any("acknowledged messages lie beyond the log's end" in reason for reason in older)
    assert any("back-check" in reason for reason in older) == (name != "one_moment")
    assert report.transactions[0].outcomes.get("departing", 0) == 0
    reported = with_clients(name, copied=True)
    assert (reported.verdict, reported.violations, reported.sources[0].reasons) == ("conforms", [], [])
    assert any("the client log is younger than the copy" in note for note in reported.sources[0].notes)


def test_a_client_log_that_ends_before_the_store_is_no_violation(tmp_path: Path) -> None:
    """Copied before a store that was written on: of what came then it says nothing."""
    folder = recording_as_left("lab/copies")
    lines = (folder / "client.ndjson").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "client.ndjson").write_text("".join(lines[:900]), encoding="utf-8")
    report = check(folder / "queues_older", client=tmp_path / "client.ndjson")
    assert (report.verdict, report.violations) == ("inconclusive", [])
    assert any("the client log is older than the store" in reason for reason in report.sources[0].reasons)
    assert check(folder / "queues_older", client=tmp_path / "client.ndjson", copied=True).verdict == "conforms"


def test_what_a_client_was_promised_within_the_copy_is_judged(tmp_path: Path) -> None:
    """An answer that lies within the log, and another message lies there."""
    folder = recording_as_left("lab/copies")
    lines = (folder / "client.ndjson").read_text(encoding="utf-8").splitlines()
    at = next(n for n, line in enumerate(lines) if '"op":"send"' in line and '"result":"ok"' in line)
    lines[at] = json.dumps(json.loads(lines[at]) | {"crc": 1})
    (tmp_path / "client.ndjson").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for is_copied in (False, True):
        report = check(folder / "queues_older", client=tmp_path / "client.ndjson", copied=is_copied)
        (found,) = report.violations
        assert found.rule == "queue/message-that-was-acknowledged-is-what-its-producer-sent", is_copied


@pytest.mark.parametrize("reported", [False, True])
def test_damage_within_a_copy_is_found(copied: Path, *, reported: bool) -> None:
    path = next((copied / "consumequeue/orders/1").iterdir())
    data = bytearray(path.read_bytes())
    data[60:68] = (int.from_bytes(data[60:68], "big") + 8).to_bytes(8, "big")
    path.write_bytes(data)
    (found,) = check(copied, copied=reported).violations
    assert (found.rule, found.trace) == (POINTS, "orders/1")
    assert found.where is not None
    assert found.where.offset == 60


def test_a_byte_of_the_log_of_a_copy_is_found(copied: Path) -> None:
    (log, *_) = log_files(copied)
    record = next(record for record in read_log(copied)[5:] if len(record.body) > 20)
    data = bytearray(log.read_bytes())
    data[data.index(record.body, record.position)] ^= 1
    log.write_bytes(data)
    report = check(copied, copied=True)
    assert report.verdict == "departs"
    assert {found.trace for found in report.violations} == {"commitlog"}


def test_a_checkpoint_that_was_copied_after_the_queues_is_stated(tmp_path: Path) -> None:
    """By itself it accuses, and says what else it may be; the user's word makes it a warning about the copy."""
    killed(tmp_path)
    queue = tmp_path / "consumequeue/orders/0" / f"{0:020}"
    queue.write_bytes(queue.read_bytes()[: 5 * 20].ljust(2000, b"\0"))
    for later in sorted(queue.parent.iterdir())[1:]:
        later.unlink()
    with (tmp_path / "checkpoint").open("r+b") as file:
        file.seek(5 * 8)
        file.write((10_000).to_bytes(8, "big"))  # as a broker from 5.4 on says that all before is in its queue
    (found,) = check(tmp_path).violations
    assert found.rule == "queue/every-message-has-its-entry"
    assert "unless this is a copy whose checkpoint is younger than its queues: --copied says so" in found.message
    report = check(tmp_path, copied=True)
    assert (report.verdict, report.violations) == ("conforms", [])
    assert any("the checkpoint was copied after 1 queue (orders/0)" in note for note in report.sources[0].notes)


@pytest.mark.parametrize("reported", [False, True])
def test_an_index_that_was_copied_after_the_log_is_no_violation(tmp_path: Path, *, reported: bool) -> None:
    """Its last items point beyond the log's end, and a slot may be older than they are."""
    store = shutil.copytree(recording_as_left("layouts/index_lives_5.5.0"), tmp_path / "left") / "store"
    (store / "abort").write_text("1")
    cut = read_log(store)[-200]
    log = log_files(store)[-1]
    data = bytearray(log.read_bytes())
    at = cut.position - int(log.name)
    data[at:] = bytes(len(data) - at)
    log.write_bytes(data)
    (store / "checkpoint").write_bytes(bytes(4096))  # it was copied first
    report = check(store, copied=reported)
    assert not report.violations
    says = report.sources[0].notes if reported else report.sources[0].reasons
    assert (report.verdict, report.sources[0].reasons == []) == (
        ("conforms", True) if reported else ("inconclusive", False)
    )
    assert any(
        "index/" in text and ("copied after the log" if reported else "--copied says so") in text for text in says
    )


def test_an_item_of_an_index_that_was_copied_is_judged(tmp_path: Path) -> None:
    store = shutil.copytree(recording_as_left("layouts/index_lives_5.5.0"), tmp_path / "left") / "store"
    (store / "abort").write_text("1")
    index = index_in(open_store(store))
    assert index is not None
    file = index.files[-1]
    path, at = store / file.name, file.item_at(file.items // 2)
    data = bytearray(path.read_bytes())
    data[at] ^= 1  # its hash
    path.write_bytes(data)
    assert check(store, copied=True).verdict != "conforms"


def test_a_checkpoint_and_queues_that_were_copied_after_the_log_are_no_violation(tmp_path: Path) -> None:
    """The same if the log is copied first; without the option, the messages read so."""
    store = shutil.copytree(recording("normal"), tmp_path / "store")
    (store / "abort").write_text("1")
    cut = read_log(store)[-100]
    log = next(log for log in log_files(store) if int(log.name) <= cut.position < int(log.name) + log.stat().st_size)
    data = bytearray(log.read_bytes())
    at = cut.position - int(log.name)
    data[at:] = bytes(len(data) - at)
    log.write_bytes(data)
    report = check(store, copied=True)
    assert not report.violations
    assert any("the checkpoint was copied after the log" in note for note in report.sources[0].notes)
    (found,) = (one for one in check(store).violations if one.rule == "log/what-was-flushed-is-still-in-the-log")
    assert any("--copied says so" in line for line in found.story)
