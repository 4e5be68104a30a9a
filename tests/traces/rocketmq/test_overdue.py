"""Tasks that a broker has not done though their time has come: reported with their amount, and no verdict."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from gapless.traces.check import check
from gapless.traces.report.values import Report
from gapless.traces.sources.rocketmq.segments.lifetime import COUNTED, QUIET, SAMPLES, Lifetime, lifetime
from tests.support.command_line import gapless
from tests.support.rocketmq.recordings import copy_of
from tests.support.rocketmq.stores import Record, properties
from tests.support.rocketmq.transaction_broker import VERSIONS, TransactionBroker, Version
from tests.support.rocketmq.watched import Heard, watch

LEVELS = "SCHEDULE_TOPIC_XXXX"


def live(broker: TransactionBroker, seconds: int, *, checks: bool = False) -> None:
    """A message comes every second; the check service may have a round after each."""
    for _ in range(seconds):
        broker.wait(1000)
        broker.send("orders")
        if checks:
            broker.check()


def written(broker: TransactionBroker, room: Path, *, clean: bool = True, lives: int = 1, **settings: int) -> Path:
    """The store of a broker with rounds of a second; `lives`: how often it was started."""
    store = broker.write(room, clean=clean)
    with (room / "broker.conf").open("a") as file:
        for name, value in {"transactionCheckInterval": 1000, "transactionTimeOut": 1000, **settings}.items():
            file.write(f"{name}={value}\n")
    if lives > 1:
        with (store / "checkpoint").open("r+b") as file:
            file.seek(32)
            file.write(struct.pack(">q", broker.builder.records[1].position))
    return store


def judged(store: Path) -> Report:
    """The report on a store in which nothing departs."""
    report = check(store)
    assert report.verdict == "conforms", (report.sources[0].reasons, [one.message for one in report.violations])
    assert report.anomalies.get("overdue", 0) >= len(report.overdue)
    return report


def overdue(store: Path) -> list[tuple[str, str, int]]:
    """Each overdue trace of a store, its task, and by how many whole seconds it is late."""
    return [(row.trace, row.task, row.late // 1000) for row in judged(store).overdue]


# -- halves ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lives", [1, 3])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_half_that_no_round_asks_about_is_overdue(version: Version, lives: int, tmp_path: Path) -> None:
    broker = TransactionBroker(version, check_max=15)
    broker.send("orders")
    half = broker.prepare()
    live(broker, 40)
    store = written(broker, tmp_path, lives=lives)
    assert overdue(store) == [(half.property_map["UNIQ_KEY"], "half", 38)]
    (found,) = [one for one in check(store).findings if one.rule == "deadline/overdue"]
    assert (found.severity, found.position) == ("anomaly", half.position)
    assert found.where.file.startswith("commitlog/")
    assert gapless("check", str(store), "--fail-on", "overdue=30s").exit_code == 1
    assert gapless("check", str(store), "--fail-on", "overdue=1m").exit_code == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_a_half_that_is_put_back_in_every_round_is_in_time(version: Version, tmp_path: Path) -> None:
    """Its producer never decides, which is no fault of the broker."""
    broker = TransactionBroker(version, check_max=100)
    for _ in range(3):
        broker.prepare()
        live(broker, 20, checks=True)
    assert overdue(written(broker, tmp_path)) == []


def test_the_newest_version_of_a_half_is_what_waits(tmp_path: Path) -> None:
    broker = TransactionBroker(check_max=100)
    half = broker.prepare()
    live(broker, 30, checks=True)
    live(broker, 25)
    assert overdue(written(broker, tmp_path)) == [(half.property_map["UNIQ_KEY"], "half", 23)]


def test_what_is_decided_or_set_aside_is_not_asked_about(tmp_path: Path) -> None:
    broker = TransactionBroker(check_max=2)
    broker.commit(broker.prepare())
    broker.roll_back(broker.prepare())
    broker.flush_ops()
    broker.prepare()
    live(broker, 10, checks=True)
    assert len(broker.parked) == 1
    live(broker, 40)
    assert overdue(written(broker, tmp_path)) == []


def test_the_interval_of_the_settings_counts(tmp_path: Path) -> None:
    broker = TransactionBroker(check_max=15)
    broker.prepare()
    live(broker, 40)
    assert overdue(written(broker, tmp_path / "slow", transactionCheckInterval=2500)) == []
    assert overdue(written(broker, tmp_path / "late", transactionTimeOut=25_000)) == []
    store = written(broker, tmp_path / "unknown")
    settings = [line for line in (store.parent / "broker.conf").read_text().splitlines() if "Interval" not in line]
    (store.parent / "broker.conf").write_text("\n".join([*settings, ""]))
    assert overdue(store) == []


def test_an_immune_half_may_wait(tmp_path: Path) -> None:
    broker = TransactionBroker(check_max=15)
    broker.prepare(immunity=30)
    live(broker, 40)
    assert overdue(written(broker, tmp_path)) == []


def test_a_broker_that_was_down_was_not_late(tmp_path: Path) -> None:
    """Its checks begin again with its next life."""
    broker = TransactionBroker(check_max=15)
    broker.prepare()
    live(broker, 5)
    broker.wait(3_600_000)
    live(broker, 15)
    assert overdue(written(broker, tmp_path, lives=2)) == []


def test_a_clock_that_is_set_makes_no_half_late_by_hours(tmp_path: Path) -> None:
    """In one life a pause counts for a minute at most; behind a clock that was set back nothing before it counts."""
    broker = TransactionBroker(check_max=15)
    broker.prepare()
    live(broker, 5)
    broker.wait(24 * 3_600_000)
    live(broker, 5)
    ((_, _, late),) = overdue(written(broker, tmp_path / "forward"))
    assert late < 5 + 5 + COUNTED // 1000
    broker.wait(-24 * 3_600_000)
    live(broker, 5)
    assert overdue(written(broker, tmp_path / "back")) == []


def test_what_is_overdue_is_bounded_and_the_worst_comes_first(tmp_path: Path) -> None:
    broker = TransactionBroker(check_max=15)
    for _ in range(120):
        broker.prepare()
        broker.wait(100)
    live(broker, 40)
    report = judged(written(broker, tmp_path))
    assert (report.anomalies["overdue"], len(report.overdue)) == (120, 100)
    late = [row.late for row in report.overdue]
    assert late == sorted(late, reverse=True)
    assert "120 such tasks in all" in str(report)


# -- ops -------------------------------------------------------------------------------------------------------------


def test_a_decision_that_no_op_names_is_overdue(tmp_path: Path) -> None:
    broker = TransactionBroker(check_max=15)
    half = broker.prepare()
    broker.commit(half)
    live(broker, 40)
    assert overdue(written(broker, tmp_path)) == [(half.property_map["UNIQ_KEY"], "op", 40)]


def test_an_op_that_the_end_of_a_life_took_is_not_late(tmp_path: Path) -> None:
    broker = TransactionBroker(check_max=15)
    broker.commit(broker.prepare())
    live(broker, 40)
    assert overdue(written(broker, tmp_path, lives=2)) == []


def test_a_decision_that_the_check_service_has_seen_waits_for_no_op(tmp_path: Path) -> None:
    broker = TransactionBroker(check_max=15)
    broker.commit(broker.prepare())
    live(broker, 3)
    broker.check()
    broker.check()
    live(broker, 15)
    assert overdue(written(broker, tmp_path)) == []


# -- delayed messages and timers -------------------------------------------------------------------------------------


def delayed(broker: TransactionBroker, room: Path, *, clean: bool = True) -> Path:
    """A store with four messages of level 2, none of which was handed out, says the broker."""
    for number in range(4):
        later = {"DELAY": "2", "UNIQ_KEY": f"DELAYED{number}", "REAL_TOPIC": "orders", "REAL_QID": "0"}
        broker.builder.append(Record(LEVELS, b"later", properties(later), 1))
    live(broker, 40)
    store = written(broker, room, clean=clean)
    (store / "config" / "delayOffset.json").write_text(json.dumps({"offsetTable": {"2": 0}}))
    return store


def test_delayed_messages_before_which_the_cursor_stands_are_overdue(tmp_path: Path) -> None:
    store = delayed(TransactionBroker(), tmp_path)
    assert overdue(store) == [(f"{LEVELS}/1+{number}", "delayed message", 35) for number in range(4)]


def test_delayed_messages_that_may_have_been_handed_out_are_not(tmp_path: Path) -> None:
    """A broker that did not stop in order had ten seconds to write down how far it had come."""
    assert overdue(delayed(TransactionBroker(), tmp_path, clean=False)) == []


def test_a_timer_that_is_in_no_topic_is_overdue_where_it_is_no_violation(tmp_path: Path) -> None:
    """Without settings it is not known that the broker is a master: then it is overdue, and not lost."""
    store = copy_of("layouts/timer_far_5.5.0", tmp_path)
    (log, *_) = sorted((store / "commitlog").iterdir())
    data, changed = bytearray(log.read_bytes()), []
    at = 0
    while size := int.from_bytes(data[at : at + 4], "big"):
        record = bytes(data[at : at + size])
        if b"TIMER_OUT_MS" in record and b"rmq_sys_wheel_timer" not in record:
            place = at + record.index(b"TIMER_OUT_MS\x01") + len(b"TIMER_OUT_MS\x01") + 12
            data[place] ^= 1
            changed.append(at)
        at += size
    log.write_bytes(data)
    sure = check(store)
    assert sure.verdict == "departs"
    (store.parent / "broker.conf").unlink()
    report = check(store)
    rows = [row for row in report.overdue if row.task == "timer"]
    assert len(changed) > 1
    assert rows
    assert all(row.trace.startswith("timerwheel/") for row in rows)


# -- what is sound, and other readers --------------------------------------------------------------------------------


def test_a_watch_and_the_events_say_the_same(tmp_path: Path) -> None:
    broker = TransactionBroker(check_max=15)
    broker.prepare()
    broker.commit(broker.prepare())
    live(broker, 40)
    store = written(broker, tmp_path)
    report, heard = judged(store), Heard()
    assert len(report.overdue) == 2
    watching = watch(store, heard, state=tmp_path / "state")
    watched = watching.run(lambda _: False, once=True)
    assert (watched.overdue, watched.anomalies) == (report.overdue, report.anomalies)
    assert watching.status.overdue == report.overdue[0].late / 1000
    assert gapless("trace", str(store), "--out", str(tmp_path / "events.ndjson")).exit_code == 0
    events = check(tmp_path / "events.ndjson")
    assert events.anomalies == report.anomalies
    assert [row.model_copy(update={"source": str(store)}) for row in events.overdue] == report.overdue


# -- the life of a broker --------------------------------------------------------------------------------------------


def lived(life: Lifetime, due: int, *, in_one_life: bool = True) -> int:
    return int(life.since(np.array([due]), in_one_life=in_one_life)[0])


def test_a_life_counts_what_is_known_of_it() -> None:
    life = lifetime(np.array([0, 1_000, 2_000, 2_000 + 2 * COUNTED, 3_000 + 2 * COUNTED]))
    assert lived(life, 0) == 3_000 + COUNTED
    assert lived(life, 1_500) == 500 + COUNTED + 1_000
    assert lived(life, 2_000 + 2 * COUNTED - 500) == 1_500
    assert lived(life, 10 * COUNTED) == 0
    assert lived(life, 0, in_one_life=False) == 1_000, "the pause may have been the end of a life"


@pytest.mark.parametrize("cut", [1, 2, 3, 4])
def test_a_life_in_parts_is_the_whole(cut: int) -> None:
    times = np.array([5, 1_000, 990, 2_000 + QUIET, 4_000 + QUIET])
    whole, parts = lifetime(times), lifetime(times[:cut]).followed_by(lifetime(times[cut:]))
    for due in (0, 500, 1_500, 2_000 + QUIET, 3_000 + QUIET):
        for one in (True, False):
            assert lived(parts, due, in_one_life=one) == lived(whole, due, in_one_life=one)


def test_a_clock_that_is_set_back_begins_again() -> None:
    back = np.array([100_000, 200_000, 5_000, 6_000])
    for life in (lifetime(back), lifetime(back[:2]).followed_by(lifetime(back[2:]))):
        assert lived(life, 0) == 1_000
        assert life.now == 6_000


def test_a_long_life_takes_little_memory() -> None:
    life = Lifetime()
    for hour in range(10):
        life = life.followed_by(lifetime(1_000 * np.arange(3_600 * hour, 3_600 * (hour + 1))))
    assert life.moments.shape[1] <= 8 * SAMPLES + 1
    assert abs(lived(life, 100_000) - 35_899_000) < 60_000
