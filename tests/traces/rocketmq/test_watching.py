"""A store is watched while it is written: its verdict is that of a whole check, and no finding comes too soon.

A recorded store is played: the log is written piece by piece, cut anywhere, and entries follow later.
"""

import errno
import os
import shutil
from dataclasses import replace
from pathlib import Path
from random import Random
from urllib.request import urlopen

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from gapless.metrics import WatchMetrics, serve_metrics
from gapless.spec.queue import BLANK_SLOT
from gapless.traces.options import Options
from gapless.traces.problems import UsageError
from gapless.traces.sources.rocketmq.segments import tasks
from gapless.traces.sources.rocketmq.segments.results import SplitResult
from gapless.traces.sources.rocketmq.segments.splits import Split
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import FARTHEST
from gapless.traces.sources.rocketmq.store.opening import open_store
from gapless.traces.sources.rocketmq.watching import tail
from gapless.traces.sources.rocketmq.watching.live_files import as_live
from gapless.traces.watch import WatchStatus
from tests.support.night import by_day
from tests.support.rocketmq.played_store import SLOT, PlayedStore
from tests.support.rocketmq.recordings import COUNTS, recording
from tests.support.rocketmq.store_builder import StoreBuilder
from tests.support.rocketmq.stores import Record
from tests.support.rocketmq.transaction_broker import TransactionBroker
from tests.support.rocketmq.watched import (
    Clock,
    Heard,
    a_later_entry,
    checked,
    halfway,
    put_in_place,
    same,
    until_idle,
    watch,
    watch_all_of,
)

POINTS = "queue/entry-points-at-its-message"


@pytest.mark.parametrize("name", by_day(sorted(COUNTS), 1 / 3))
def test_the_report_is_that_of_a_check_wherever_the_store_is_cut(name: str, tmp_path: Path) -> None:
    chance, clock, heard = Random(name), Clock(), Heard()
    played = PlayedStore(recording(name), tmp_path / "store")

    def behind(written: int) -> None:
        played.dispatch(written - chance.choice((0, 300, 20_000)))

    watched = watch_all_of(played, heard, clock, chance, behind, most=200_000)
    played.stop()
    until_idle(watched)
    same(watched.end(), checked(tmp_path / "store"))
    assert not heard.found
    assert not [line for line in heard.says if "watched from" not in line]
    assert watched.status.records == COUNTS[name].records


def test_what_is_new_is_read_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played = PlayedStore(recording("normal"), tmp_path / "store")
    watched = watch(tmp_path / "store", Heard())
    judged: list[tuple[int, int]] = []
    until = played.records()[1000]
    played.append(until)
    played.dispatch(until)
    until_idle(watched)
    judge = tasks.judge

    def counted(store: StoreDirectory, split: Split, options: Options) -> SplitResult:
        judged.append((split.low, split.high))
        return judge(store, split, options)

    monkeypatch.setattr(tasks, "judge", counted)
    until_idle(watched)
    assert not judged
    played.append(played.records()[1001])
    played.dispatch(played.written)
    until_idle(watched)
    assert judged == [(until, played.written)]


def test_a_record_that_is_half_written_is_no_violation(tmp_path: Path) -> None:
    clock, heard = Clock(), Heard()
    played = PlayedStore(recording("normal"), tmp_path / "store")
    watched = watch(tmp_path / "store", heard, clock)
    whole, after = played.records()[500:502]
    played.append(whole)
    played.dispatch(whole)
    until_idle(watched)
    for end in range(whole, after, 7):
        played.append(end)
        clock.now += 1
        until_idle(watched)
        assert watched.status.position == whole
    played.append(after)
    until_idle(watched)
    assert watched.status.position == whole  # its entry is not there yet
    played.dispatch(after)
    until_idle(watched)
    assert watched.status.position == after
    assert not heard.found


def test_what_departs_is_reported_once_over_restarts(tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    played, watched = halfway(tmp_path, heard, clock, state=tmp_path / "state")
    position, name, at, entry = played.entries[played.indexed]
    played.append(played.records()[2100])
    played.dispatch(played.written)
    played.entry(name, at // 20, SLOT.pack(position, 1 + int(SLOT.unpack(entry)[1]), 0))
    until_idle(watched)
    assert len(heard.found) == 1
    watched.keep()
    again = watch(tmp_path / "store", heard, clock, state=tmp_path / "state")
    until_idle(again)
    assert again.end().verdict == "departs"
    assert len(heard.found) == 1
    assert not again.status.conforms


def test_an_entry_that_is_repeated_behind_all_others_is_reported_at_the_end(tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    played, watched = halfway(tmp_path, heard, clock)
    played.append(played.end)
    played.dispatch(played.end)
    until_idle(watched)
    played.stop()
    _position, name, at, entry = next(
        one for one in reversed(played.entries) if one[1].startswith("consumequeue/orders/")
    )
    played.entry(name, at // 20 + 1, entry)
    until_idle(watched)
    report = watched.end()
    same(report, checked(tmp_path / "store"))
    assert report.verdict == "departs"
    (found,) = heard.found
    assert (found.rule.partition("/")[0], found.where.file, found.where.offset) == ("queue", name, at + 20)


def test_a_log_that_is_cut_off_below_is_judged_again(tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    played, watched = halfway(tmp_path, heard, clock)
    watched.keep()
    saved = watched.status.position
    played.append(played.records()[3000])
    played.dispatch(played.written)
    until_idle(watched)
    played.cut_off(played.records()[2500])
    until_idle(watched)
    assert [line for line in heard.says if "was cut off below" in line and f"again from {saved:,} on" in line]
    played.cut_off(played.records()[1000])
    until_idle(watched)
    assert [line for line in heard.says if "all before is forgotten" in line]
    played.stop()
    until_idle(watched)
    same(watched.end(), checked(tmp_path / "store"))
    assert not heard.found


def test_files_that_expire_are_let_go(tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    played, watched = halfway(tmp_path, heard, clock)
    first = played.folder / "commitlog" / f"{0:020d}"
    assert (watched.status.position or 0) > first.stat().st_size
    first.unlink()
    clock.now += 20
    until_idle(watched)
    records = watched.status.records
    played.append(played.end)
    played.dispatch(played.end + 1)
    played.stop()
    first.unlink()
    until_idle(watched)
    report = watched.end()
    assert not heard.found
    assert (report.verdict, checked(tmp_path / "store").verdict) == ("conforms", "conforms")
    assert watched.status.records == COUNTS["normal"].records > records


def test_a_store_may_come_later_and_be_another_one(tmp_path: Path) -> None:
    heard, clock, store = Heard(), Clock(), tmp_path / "store"
    watched = watch(store, heard, clock)
    watched.look()
    watched.look()
    assert heard.says == [f"{store}: waiting for a RocketMQ store there: no such file or directory"]
    shutil.copytree(recording("normal"), store)
    until_idle(watched)
    assert watched.status.records == COUNTS["normal"].records
    shutil.rmtree(store)
    watched.look()
    shutil.copytree(recording("kill9"), store)
    clock.now += 60
    until_idle(watched)
    assert watched.status.records == COUNTS["kill9"].records
    same(watched.end(), checked(store))
    assert not heard.found


def test_a_store_that_is_removed_is_not_reported_to_have_been_empty(tmp_path: Path) -> None:
    heard, store = Heard(), tmp_path / "store"
    shutil.copytree(recording("normal"), store)
    watched = watch(store, heard, Clock())
    until_idle(watched)
    shutil.rmtree(store)
    (source,) = watched.end().sources
    assert (source.reasons, heard.says[-1]) == (
        [f"{store}: no such directory"],
        f"{store}: no such directory; tried again",
    )


def test_a_queue_whose_topic_is_deleted_blocks_nothing(tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    played, watched = halfway(tmp_path, heard, clock)
    at = watched.status.position or 0
    played.append(played.records()[2300])
    played.dispatch(played.written)
    shutil.rmtree(tmp_path / "store" / "consumequeue" / "orders")
    until_idle(watched)
    assert (watched.status.position, watched.status.lag_bytes) == (at, played.written - at)
    for _ in range(8):
        clock.now += 1
        until_idle(watched)
    assert watched.status.position == played.written > at
    assert not heard.found


@pytest.mark.parametrize("seen", [0, 1])
def test_a_topic_that_is_deleted_and_recreated_and_counts_on_is_no_violation(seen: int, tmp_path: Path) -> None:
    """Its queues' files begin with slots that are no entries, up to behind what was in the log by then."""
    heard, clock = Heard(), Clock()
    played, watched = halfway(tmp_path, heard, clock)
    begun = {name: at for _position, name, at, _entry in reversed(played.entries[played.indexed :])}
    shutil.rmtree(tmp_path / "store/consumequeue/orders")
    blanks = {name: range(at // 20 + 1) for name, at in begun.items() if name.startswith("consumequeue/orders/")}
    for share in (3000, 4000, len(played.records()) - 1):
        if seen:
            clock.now += 1
            until_idle(watched)
        played.append(played.records()[share])
        played.dispatch(played.written)
        for name, numbers in blanks.items():
            for number in numbers:
                played.entry(name, number, SLOT.pack(0, BLANK_SLOT, 0))
        clock.now += 1
        until_idle(watched)
    report, whole = watched.end(), checked(tmp_path / "store")
    assert not heard.found
    assert report.violations == whole.violations == []
    assert (report.verdict, report.sources[0].reasons) == (whole.verdict, whole.sources[0].reasons)
    assert watched.status.position == played.written


def test_a_queue_recreated_is_judged_from_where_its_log_begins_by_then(tmp_path: Path) -> None:
    """Its beginning, in a life before, has expired."""
    builder, clock, heard, store = StoreBuilder(log_file_size=2048), Clock(), Heard(), tmp_path / "store"
    watched = watch(store, heard, clock)
    for step in range(3):
        if step == 1:
            builder.delete_topic("orders")
        builder.expired = step
        for _ in range(50):
            builder.append(Record("orders", body=b"again"))
        written = builder.write(tmp_path / str(step))
        put_in_place(written, store)
        clock.now += 20
        until_idle(watched)
    report = watched.end()
    assert (report.verdict, report.sources[0].reasons) == ("conforms", [])
    assert checked(store).verdict == "conforms"
    assert watched.status.records == 150
    assert not heard.found


@pytest.mark.parametrize("expired", [1, 3])
def test_a_half_that_expired_while_it_was_watched_may_be_named_again(expired: int, tmp_path: Path) -> None:
    """It was decided, and forgotten; then its client decides again. The op that says so expired, too, or did not."""
    broker, clock, heard, store = TransactionBroker(), Clock(), Heard(), tmp_path / "store"
    broker.builder.log_file_size = 4096
    watched = watch(store, heard, clock)
    twice = broker.prepare()
    for files in (2, 4, 5):
        broker.roll_back(twice)
        while len(broker.builder.log) < files:
            broker.flush_ops()
            broker.roll_back(broker.prepare(body=bytes(500)))
        broker.flush_ops()
        broker.builder.expired = expired if files == 5 else 0
        written = broker.write(tmp_path / str(files), clean=files == 5)
        put_in_place(written, store)
        clock.now += 20
        until_idle(watched)
    report, whole = watched.end(), checked(store)
    assert (report.verdict, report.sources[0].reasons) == (whole.verdict, whole.sources[0].reasons) == ("conforms", [])
    assert report.sources[0].notes == whole.sources[0].notes
    assert any("named by 2 marks" in note for note in whole.sources[0].notes) == (expired == 1)
    assert not heard.found


def test_an_entry_that_is_blanked_is_reported(tmp_path: Path) -> None:
    """The queue was not deleted as long as it has its first entry."""
    heard, clock = Heard(), Clock()
    played, watched = halfway(tmp_path, heard, clock)
    name, number, _entry = a_later_entry(played, 40)
    played.entry(name, number, SLOT.pack(0, BLANK_SLOT, 0))
    until_idle(watched)
    assert [(found.where.file, found.where.offset) for found in heard.found] == [(name, number * 20)]


def test_a_state_that_cannot_be_written_leaves_nothing_next_to_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard, room = Heard(), tmp_path / "states"
    _played, watched = halfway(tmp_path, heard, Clock(), state=room / "state")
    watched.keep()
    before = (room / "state").read_bytes()

    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for _ in range(2):
        watched.keep()
    assert heard.says[-1] == f"{room / 'state'}: cannot be written (No space left on device); tried again"
    assert [file.name for file in room.iterdir()] == ["state"]
    assert (room / "state").read_bytes() == before


@pytest.mark.parametrize("broken", ["version", "store", "garbage", "cut", "flipped", "pipe"])
def test_a_state_that_does_not_fit_is_refused(broken: str, tmp_path: Path) -> None:
    state = tmp_path / "state"
    _played, watched = halfway(tmp_path, Heard(), Clock(), state=state, version="1")
    watched.keep()
    path, version = tmp_path / "store", "1"
    if broken == "version":
        version = "2"
    if broken == "store":
        path = tmp_path / "other"
    if broken == "garbage":
        state.write_bytes(b"x")
    if broken == "cut":
        state.write_bytes(state.read_bytes()[:-100])
    if broken == "flipped":
        data = bytearray(state.read_bytes())
        data[200] ^= 1  # a half that is remembered: a judgement from here on would accuse
        state.write_bytes(data)
    if broken == "pipe":
        state.unlink()
        os.mkfifo(state)
    with pytest.raises(UsageError, match=f"{state}: .*; name another file, or delete this one"):
        watch(path, Heard(), state=state, version=version)


@pytest.mark.parametrize("name", ["index_first_5.5.0", "timer_lives_5.5.0", "tiered_kill_clean_5.5.0"])
def test_what_lies_next_to_the_queues_is_no_violation(name: str, tmp_path: Path) -> None:
    """Timers and tiered storage are judged at the end, as by a check."""
    heard = Heard()
    played = PlayedStore(recording(f"layouts/{name}"), tmp_path / "store")
    watched = watch(tmp_path / "store", heard)
    for end in (played.end // 3, played.end):
        played.append(end)
        played.dispatch(end)
        until_idle(watched)
    played.stop()
    until_idle(watched)
    report, whole = watched.end(), checked(tmp_path / "store")
    same(report, whole)
    assert not whole.violations


def test_metrics_say_what_is_known(tmp_path: Path) -> None:
    heard, clock = Heard(), Clock()
    played, watched = halfway(tmp_path, heard, clock)
    registry = CollectorRegistry()
    registry.register(WatchMetrics(watched.status, "store"))

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"gapless_{name}", {"store": "store", **labels})

    assert [value("up"), value("conforms"), value("lag_bytes"), value("broker_running")] == [1, 1, 0, 0]
    assert value("records") == 2000
    assert value("position_bytes") == value("bytes_judged_total") == played.written
    name, number, entry = a_later_entry(played, 10)
    played.entry(name, number, entry[:8] + bytes(4) + entry[12:])
    until_idle(watched)
    (found,) = heard.found
    assert (value("conforms"), value("findings", rule=found.rule)) == (0, 1)
    played.append(played.end)
    clock.now += 20
    watched.look()
    lag = value("lag_bytes")
    assert lag is not None
    assert 0 <= lag - (played.end - played.records()[2000]) < 1 << 16  # rooms on a disk are whole blocks
    played.dispatch(played.end + 1)
    until_idle(watched)
    watched.end()
    assert watched.status.anomalies
    for kind, count in watched.status.anomalies.items():
        assert value("anomalies", kind=kind) == count


def test_metrics_before_the_first_verdict_say_what_is_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = PlayedStore(recording("normal"), tmp_path / "store")
    played.append(played.records()[1000])
    played.dispatch(played.written)
    clock = Clock()
    watched = watch(tmp_path / "store", Heard(), clock)
    registry = CollectorRegistry()
    registry.register(WatchMetrics(watched.status, "store"))

    def values(*names: str) -> list[float | None]:
        return [registry.get_sample_value(f"gapless_{name}", {"store": "store"}) for name in names]

    first = played.written
    assert values("up", "conforms", "position_bytes", "records") == [None, None, None, 0]
    assert values("lag_bytes", "lag_seconds") == [first, 0]
    judge, seen = tasks.judge, list[list[float | None]]()

    def judged(store: StoreDirectory, split: Split, options: Options) -> SplitResult:
        clock.now += 5
        if not seen:
            played.append(played.records()[1100])  # while it judges what was there before
            seen.append(values("up", "conforms", "position_bytes", "lag_bytes", "lag_seconds"))
        return judge(store, split, options)

    monkeypatch.setattr(tasks, "judge", judged)
    watched.look()
    assert seen == [[1, None, 0, played.written, 5]]
    assert played.written > first
    assert values("up", "conforms", "position_bytes", "lag_bytes") == [1, 1, first, played.written - first]
    played.dispatch(played.written)
    until_idle(watched)
    assert values("conforms", "lag_bytes", "lag_seconds") == [1, 0, 0]


def test_a_store_without_a_record_is_not_reported_to_conform(tmp_path: Path) -> None:
    watched = watch(tmp_path / "store", Heard())
    watched.look()
    assert (watched.status.up, watched.status.conforms, watched.status.lag_bytes) == (False, None, None)
    PlayedStore(recording("normal"), tmp_path / "store").append(10)
    until_idle(watched)
    assert (watched.status.up, watched.status.conforms, watched.status.lag_bytes) == (True, None, 0)


def test_the_first_report_is_made_soon_and_another_when_the_present_is_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "FIRST_SPLIT", 100_000)
    played = PlayedStore(recording("normal"), tmp_path / "store")
    played.append(played.records()[2000])
    played.dispatch(played.written)
    heard, clock = Heard(), Clock()
    watched = watch(tmp_path / "store", heard, clock)
    for _ in range(30):
        clock.now += 1.1
        watched.look()
    first, present, _at_rest = heard.reports
    assert first.sources[0].records < 600
    assert present.sources[0].records == 2000


def test_metrics_are_read_as_prometheus_reads_them() -> None:
    """Over HTTP, by Prometheus' own parser; the store's name may contain characters that labels must not."""
    status = WatchStatus(up=True, records=7, lag_bytes=5, entries_lag_bytes=3, left=("the hash index",))
    status.findings["queue/a"] += 2
    status.anomalies["commit again"] = 4
    port = serve_metrics(status, 'a "b"\\\n\udcff', "127.0.0.1", 0)
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    ours = [sample for family in families for sample in family.samples if sample.name.startswith("gapless_")]
    assert {sample.labels.pop("store") for sample in ours} == {'a "b"\\\\n\\udcff'}
    by_name = {(sample.name, *sample.labels.values()): sample.value for sample in ours}
    assert by_name["gapless_up",] == 1
    assert by_name["gapless_records",] == 7
    assert (by_name["gapless_lag_bytes",], by_name["gapless_entries_lag_bytes",]) == (5, 3)
    assert by_name["gapless_findings", "queue/a"] == 2
    assert by_name["gapless_anomalies", "commit again"] == 4
    assert by_name["gapless_judged_at_the_end", "the hash index"] == 1
    assert all(family.documentation for family in families)


def test_the_log_of_a_running_broker_is_followed_beyond_where_it_was() -> None:
    store = open_store(recording("normal"))
    assert as_live(replace(store, live=True, limit=5)).limit == FARTHEST
