"""Trace topics are watched too: an answer is compared with the log when it arrives, and counts as in a check."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest

from gapless.traces.options import Options
from gapless.traces.sources.rocketmq.clients import follow
from gapless.traces.sources.rocketmq.clients.follow import TraceFollower
from gapless.traces.sources.rocketmq.clients.recent_keys import RecentKeys
from gapless.traces.sources.rocketmq.clients.trace_bodies import ANSWER_ROWS, KEY, PLACE, WITNESS
from gapless.traces.sources.rocketmq.clients.trace_topic_evidence import as_answers
from gapless.traces.sources.rocketmq.log import scan
from gapless.traces.sources.rocketmq.segments.splits import SplitReader, splits
from gapless.traces.sources.rocketmq.store.opening import open_store
from gapless.traces.sources.rocketmq.watching.live_files import as_live
from tests.support.night import by_day
from tests.support.rocketmq.played_store import PlayedStore
from tests.support.rocketmq.recordings import RECORDINGS, copy_of, recording
from tests.support.rocketmq.stores import Record, encode, read_log
from tests.support.rocketmq.traced import TRACES, TracedBuilder, answers, answers_in, handed, rewrite, text_of, write_at
from tests.support.rocketmq.watched import Clock, Heard, checked, same, until_idle, watch, watch_all_of

LOST = "queue/message-that-was-acknowledged-is-in-the-log-where-the-answer-said"
OTHER = "queue/message-that-was-acknowledged-is-what-its-producer-sent"
REPORTED = 0.1, 1.0, 4.0, 100.0  # seconds between two looks: after the last, a report is made
TRACED = sorted(path.name.removesuffix(".tar.xz") for path in (RECORDINGS / "traced").iterdir())


def played_of(name: str, folder: Path) -> PlayedStore:
    source = recording(f"traced/{name}")
    played = PlayedStore(source, folder)
    if (source.parent / "broker.conf").is_file():
        shutil.copy(source.parent / "broker.conf", folder.parent)
    return played


@pytest.mark.parametrize("name", by_day(TRACED, 1 / 4))
def test_the_report_is_that_of_a_check_wherever_the_log_is_cut(name: str, tmp_path: Path) -> None:
    chance, clock, heard = Random(name), Clock(), Heard()
    played = played_of(name, tmp_path / "store")

    def behind(written: int) -> None:
        played.dispatch(written - chance.choice((0, 300, 20_000)))

    watched = watch_all_of(played, heard, clock, chance, behind, passes=REPORTED)
    played.stop()
    until_idle(watched)
    report = watched.end()
    same(report, checked(tmp_path / "store"))
    assert report.testimony
    assert not heard.found


# -- reported -------------------------------------------------------------------------------------------------------


def answered_places(witness: Record) -> set[int]:
    return {answer.position for answer in answers_in(text_of(witness))}


def another(store: Path, _before: Record, record: Record) -> None:
    rewrite(store, record, properties=record.properties.replace(b"7F0000", b"8F0000"))


def gone(store: Path, before: Record, record: Record) -> None:
    write_at(store, before.position, encode(replace(before, body=before.body + b"-" * record.size)))


@pytest.mark.parametrize(("damage", "rule"), [(another, OTHER), (gone, LOST)])
def test_an_answer_that_is_not_kept_is_reported_when_it_is_traced(
    damage: Callable[[Path, Record, Record], None], rule: str, tmp_path: Path
) -> None:
    store = copy_of("traced/clean_5.5.0", tmp_path)
    log, by_name = read_log(store), {answer.position for answer in answers(store)}
    pairs = [(a, b) for a, b in pairwise(log) if b.position in by_name and a.end == b.position and b.topic == "orders"]
    before, record = pairs[len(pairs) // 2]
    witness = next(one for one in log if one.topic == TRACES and record.position in answered_places(one))
    damage(store, before, record)
    heard, clock = Heard(), Clock()
    played = PlayedStore(store, tmp_path / "played/store")
    played.append(witness.position)
    played.dispatch(played.written)
    watched = watch(tmp_path / "played/store", heard, clock, state=tmp_path / "state")
    until_idle(watched)
    assert rule not in [found.rule for found in heard.found]
    watched.keep()
    watched = watch(tmp_path / "played/store", heard, clock, state=tmp_path / "state")  # its place tells what was read
    played.append(witness.end)
    played.dispatch(played.written)
    clock.now += 3
    until_idle(watched)
    (found,) = [found for found in heard.found if found.rule == rule]
    assert (found.position, found.where.offset) == (record.position, record.position)
    assert f"the trace message at {witness.position}" in found.message
    assert heard.reports[-1].verdict == "departs"
    played.append(played.end)
    played.dispatch(played.end)
    played.stop()
    until_idle(watched)
    report, whole = watched.end(), checked(tmp_path / "played/store")
    assert (report.verdict, report.testimony) == (whole.verdict, whole.testimony)
    assert report.coverage["queue.acknowledge"] == whole.coverage["queue.acknowledge"]
    assert len([found for found in heard.found if found.rule == rule]) == 1


# -- what it costs -----------------------------------------------------------------------------------------------------


def test_a_log_without_traces_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(TraceFollower, "_read", read)
    played = PlayedStore(recording("normal"), tmp_path / "store")
    played.append(played.end)
    played.dispatch(played.end)
    watched = watch(tmp_path / "store", Heard())
    until_idle(watched)
    assert watched.status.position == played.end


def test_what_was_reported_long_ago_is_forgotten_and_counts_again() -> None:
    keys = RecentKeys(100)
    for low in range(0, 1000, 10):
        some = np.arange(low, low + 10)
        assert not keys.has(some).any()
        keys.add(some)
        assert keys.has(np.arange(max(0, low - 90), low + 10)).all()
        assert len(keys.older) + sum(map(len, keys.newer)) <= 210
    assert not keys.has(np.arange(700)).any()
    other = keys.copy()
    other.add(np.array([5000]))
    assert (keys.has(np.array([5000])).item(), other.has(np.array([5000])).item()) == (False, True)


def test_a_message_that_was_handed_out_late_is_looked_for_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its key is not a recent one: it counts as not seen, until the whole log is read."""
    monkeypatch.setattr(follow, "KEYS", 2)
    traced = TracedBuilder()
    sent = [traced.send() for _ in range(30)]
    store = traced.builder.write(tmp_path / "sent")
    early = len(read_log(store))
    for one in (sent[0], sent[3]):
        traced.trace(handed(one.property_map["UNIQ_KEY"]))
    played = PlayedStore(traced.builder.write(tmp_path / "whole"), tmp_path / "store")
    heard, clock = Heard(), Clock()
    watched = watch(tmp_path / "store", heard, clock)
    records = played.records()
    for end in (records[early // 2], records[early], played.end):
        played.append(end)
        played.dispatch(end)
        clock.now += 3
        until_idle(watched)
    watched.dirty = True
    watched._report()
    (row,) = heard.reports[-1].testimony
    assert (row.delivered, row.readable) == (2, 0)
    played.stop()
    report = watched.end()
    same(report, checked(tmp_path / "store"))
    (row,) = report.testimony
    assert (row.delivered, row.readable) == (2, 2)


@pytest.mark.parametrize("store", ["traced/clean_5.5.0", "layouts/dledger_lives_5.5.0"])
def test_records_that_answers_name_are_read_again_where_they_lie(store: str) -> None:
    """In a DLedger log each has a header before it, where what is read again begins."""
    opened = as_live(open_store(recording(store), bare=True))
    followed = TraceFollower(Options(), opened.start)
    for split in splits(opened):
        for scanned in SplitReader(opened, split, keys=True).segments():
            assert scanned.columns.keys is not None
            rows = np.full((ANSWER_ROWS, scanned.columns.count), -1, np.int64)
            rows[PLACE], rows[KEY], rows[WITNESS] = scanned.columns.log[scan.POSITION], scanned.columns.keys[0], 0
            followed._look_back(opened, as_answers(rows[:, 7::40]))
            assert len(followed.progress.lost) == 0
    assert followed.progress.tally.testified + len(followed.progress.tally.doubts) > 10
