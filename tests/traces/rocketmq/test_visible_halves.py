"""Halves that consumers can read, though no final makes them visible: docs/rocketmq-transactions.md#visible-halves."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from gapless import check
from gapless.traces.report.values import Finding, Report
from gapless.traces.sources.rocketmq.transactions import joined_transactions as joining
from tests.support.command_line import gapless
from tests.support.rocketmq.played_store import PlayedStore
from tests.support.rocketmq.recordings import RECORDINGS, recording, recording_as_left
from tests.support.rocketmq.store_builder import StoreBuilder
from tests.support.rocketmq.stores import SCHEDULE_TOPIC, Record, properties, read_log
from tests.support.rocketmq.transaction_broker import VERSIONS, Answer, TransactionBroker, Version, pairs_of
from tests.support.rocketmq.transactions import HALF, PARK, is_final, key_of, numbers_in
from tests.support.rocketmq.watched import Clock, Heard, checked, same, watch_all_of

RULE = "visibility/half-that-consumers-can-read-is-committed"
LIGHT, RETRY, DEAD = "%LMQ%one", "%RETRY%CG", "%DLQ%CG"
MULTI = {"INNER_MULTI_DISPATCH": LIGHT}

RECORDED = {  # entries that lead to a half which is undecided, or rolled back, and the verdict
    "reports/half_in_light_queue_5.5.0": (1, 1, "conforms"),
    "visible/light_5.3.3": (6, 1, "conforms"),
    "visible/light_4.9.7": (6, 1, "conforms"),
    "visible/light_rocksdb_5.5.0": (6, 1, "conforms"),
    "visible/light_table_5.5.0": (3, 1, "inconclusive"),  # its last check was not seen: docs, #half-table
    "visible/light_sent_back_5.5.0": (11, 0, "inconclusive"),  # a dead letter names the light queue
    "visible/light_sent_back_4.9.7": (12, 0, "conforms"),
    "visible/light_popped_5.5.0": (6, 0, "conforms"),
    "visible/light_delayed_4.9.7": (1, 0, "inconclusive"),  # its half was delayed
    "visible/light_timer_5.3.3": (0, 0, "conforms"),  # its producer had committed it before it came
    "visible/sent_back_5.5.0": (1, 2, "conforms"),
    "visible/sent_back_5.3.3": (1, 2, "conforms"),
    "visible/sent_back_4.9.7": (1, 2, "conforms"),
}
HEALTHY = ("lmq", "pop_retry", "layouts/lmq_lives_5.5.0", "layouts/lmq_killed_5.3.3", "layouts/lmq_again_4.9.7")


def shown(report: Report) -> tuple[int, int]:
    """Counts the entries that lead to an undecided half, and those that lead to one that was rolled back."""
    found = Counter(report.anomalies)
    return found["show_undecided"], found["show_rolled_back"]


def accused(path: Path) -> list[Finding]:
    """Returns the findings by the design alone."""
    return [found for found in check([path], profile="strict").violations if found.rule == RULE]


def test_every_recording_is_expected_to_show_something() -> None:
    names = {f"visible/{path.name.removesuffix('.tar.xz')}" for path in (RECORDINGS / "visible").glob("*.tar.xz")}
    assert names == {name for name in RECORDED if name.startswith("visible/")}


@pytest.mark.parametrize("name", RECORDED)
def test_what_a_broker_shows_is_counted_and_the_design_forbids_it(name: str) -> None:
    folder = recording_as_left(name)
    undecided, rolled_back, verdict = RECORDED[name]
    report = check([folder])
    assert report.verdict == verdict, report.model_dump_json(indent=1)
    assert shown(report) == (undecided, rolled_back)
    assert bool(accused(folder)) == bool(undecided + rolled_back)


@pytest.mark.parametrize("name", HEALTHY)
def test_a_broker_whose_halves_name_no_light_queue_shows_none(name: str) -> None:
    report = check([recording_as_left(name)])
    assert shown(report) == (0, 0)
    assert not [step for step, count in report.coverage.items() if step.startswith("visibility.") and count]


def test_a_story_says_which_entry_leads_to_the_half_and_what_became_of_it() -> None:
    folder = recording_as_left("visible/light_5.3.3")
    (found,) = accused(folder)
    assert (found.count, len(found.traces)) == (3, 3)
    assert found.story[2:7] == [
        "  1. show(number=1, position=247)   not allowed",
        "",
        'show breaks the rule "a half that consumers can read is committed".',
        "Here: finals = 0.",
        "Entry 1 of %LMQ%one/0 leads consumers to number 0 of RMQ_SYS_TRANS_HALF_TOPIC/0.",
    ]
    assert "RocketMQ's light queues show halves as they are stored: apache/rocketmq#6795." in found.story
    assert "Consequence: consumers receive a message that was never committed." in found.story
    assert "no final came before it (the transaction was rolled back by the op at 1758)" in found.message
    again = gapless("explain", str(folder), "--trace", found.trace, "--profile", "strict")
    assert again.exit_code == 1
    assert "show(number=1, position=247)   not allowed" in again.stdout


def test_events_of_a_store_say_the_same(tmp_path: Path) -> None:
    folder, events = recording_as_left("visible/sent_back_5.5.0"), tmp_path / "events.ndjson"
    assert gapless("trace", str(folder), "--out", str(events)).exit_code == 0
    assert shown(check([events])) == shown(check([folder])) == (1, 2)
    (of_events,), (of_store,) = accused(events), accused(folder)
    assert sorted(of_events.traces) == sorted(of_store.traces)
    assert of_events.count == of_store.count == 3


# Planted: one thing at a time, in a store of each version that is lawful otherwise.


class LightBroker(TransactionBroker):
    """A broker whose clients name a light queue in some halves, and send records back."""

    light = False

    def _added(self) -> dict[str, str]:
        return super()._added() | (MULTI if self.light else {})

    def _renew(self, half: Record, added: dict[str, str]) -> Record:
        return super()._renew(without_numbers(half), added)

    def commit(self, half: Record, *, from_check: bool = False, answer: Answer = "ok") -> Record | None:
        """A commit numbers the final in the light queue again."""
        again = replace(without_numbers(half), position=half.position, number=half.number)
        return super().commit(again, from_check=from_check, answer=answer)

    def park(self, half: Record) -> Record:
        """A broker numbers the copy again."""
        return super().park(without_numbers(half))

    def send_back(self, record: Record, topic: str = RETRY) -> Record:
        """A broker copies whatever record a consumer names."""
        pairs = {name: value for name, value in pairs_of(record).items() if not name.startswith("INNER_MULTI")}
        return self._append(replace(record, topic=topic, queue=0, properties=self._written(pairs, again=True)))


def without_numbers(record: Record) -> Record:
    """A copy is numbered again in its light queues."""
    pairs = {name: value for name, value in record.property_map.items() if name != "INNER_MULTI_QUEUE_OFFSET"}
    return replace(record, properties=properties(pairs))


def half_in_a_light_queue(broker: LightBroker) -> Record:
    broker.light = True
    half = broker.prepare()
    broker.light = False
    return half


def half_of_a_light_queue_is_rolled_back(broker: LightBroker) -> Record:
    half = half_in_a_light_queue(broker)
    broker.roll_back(half)
    return half


def half_of_a_light_queue_is_committed_later(broker: LightBroker) -> Record:
    half = half_in_a_light_queue(broker)
    broker.commit(half)
    return half


def undecided_half_is_sent_back(broker: LightBroker) -> Record:
    return broker.send_back(broker.prepare())


def half_is_a_dead_letter_after_its_rollback(broker: LightBroker) -> Record:
    half = broker.prepare()
    broker.roll_back(half)
    broker.flush_ops()
    return broker.send_back(half, DEAD)


def half_is_sent_back_before_its_commit(broker: LightBroker) -> Record:
    half = broker.prepare()
    copy = broker.send_back(half)
    broker.commit(half)
    return copy


FAULTS: dict[str, tuple[Callable[[LightBroker], Record], tuple[int, int]]] = {
    "half in a light queue": (half_in_a_light_queue, (1, 0)),
    "half of a light queue is rolled back": (half_of_a_light_queue_is_rolled_back, (1, 1)),
    "half of a light queue is committed later": (half_of_a_light_queue_is_committed_later, (1, 0)),
    "undecided half is sent back": (undecided_half_is_sent_back, (1, 0)),
    "half is a dead letter after its rollback": (half_is_a_dead_letter_after_its_rollback, (0, 1)),
    "half is sent back before its commit": (half_is_sent_back_before_its_commit, (1, 0)),
}


def half_is_sent_back_after_its_commit(broker: LightBroker) -> None:
    half = broker.prepare()
    broker.commit(half)
    broker.send_back(half)
    broker.send_back(half, DEAD)


def final_is_sent_back(broker: LightBroker) -> None:
    final = broker.commit(broker.prepare())
    assert final is not None
    broker.send_back(replace(final, prepared_position=0))


def message_with_the_marker_of_a_half(broker: LightBroker) -> None:
    """A batch has such messages, and a broker makes no halves of them."""
    broker.builder.append(
        Record("orders", b"m", properties({"UNIQ_KEY": "7F", "TRAN_MSG": "true"}), born_host=bytes(8))
    )


def delayed_half(broker: LightBroker) -> None:
    pairs = {"UNIQ_KEY": "7F", "TRAN_MSG": "true", "DELAY": "3", "REAL_TOPIC": HALF, "REAL_QID": "0"}
    broker.builder.append(Record(SCHEDULE_TOPIC, b"d", properties(pairs), queue=2))


def stranger_is_sent_back(broker: LightBroker) -> None:
    """Its half was another broker's."""
    pairs = {"UNIQ_KEY": "7F", "TRAN_MSG": "true", "REAL_TOPIC": RETRY, "REAL_QID": "0"}
    broker.builder.append(Record(RETRY, b"s", properties(pairs)))


def half_has_no_entry_yet(broker: LightBroker) -> None:
    """The broker was killed before it dispatched its last message."""
    broker.light = True
    broker.prepare()
    last = broker.builder.records[-1]
    for entries in broker.builder.queues.values():
        for number in [number for number, entry in entries.items() if entry.position == last.position]:
            del entries[number]


LAWFUL = (
    half_is_sent_back_after_its_commit, final_is_sent_back, message_with_the_marker_of_a_half, delayed_half,
    stranger_is_sent_back, half_has_no_entry_yet,
)  # fmt: skip


def broker_of(version: Version) -> LightBroker:
    """A broker with some plain messages and transactions, and a light queue."""
    broker = LightBroker(version, builder=StoreBuilder(1 << 14, queue_file_size=200))
    for count in range(3):
        broker.light = count == 1
        broker.send("orders")
    broker.light = False
    broker.commit(broker.prepare())
    broker.roll_back(broker.prepare())
    return broker


def written(broker: LightBroker, room: Path, *, clean: bool = True) -> Path:
    """Writes the store, and the settings by which it has light queues."""
    broker.flush_ops()
    broker.write(room, clean=clean)
    with (room / "broker.conf").open("a") as conf:
        conf.write("enableLmq=true\nenableMultiDispatch=true\nmappedFileSizeConsumeQueue=200\n")
    (room / "client.ndjson").unlink()
    return room


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("label", FAULTS)
def test_a_half_that_consumers_can_read_is_found_at_its_place(label: str, version: Version, tmp_path: Path) -> None:
    plant, counts = FAULTS[label]
    broker = broker_of(version)
    place = plant(broker)
    folder = written(broker, tmp_path)
    report = check([folder])
    assert (report.verdict, shown(report)) == ("conforms", counts), report.model_dump_json(indent=1)
    (found,) = accused(folder)
    assert (found.position, found.trace, found.count) == (place.position, key_of(place), 1)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("course", LAWFUL)
def test_what_looks_like_it_and_is_lawful_is_not(
    course: Callable[[LightBroker], None], version: Version, tmp_path: Path
) -> None:
    broker = broker_of(version)
    course(broker)
    folder = written(broker, tmp_path, clean=course is not half_has_no_entry_yet)
    assert shown(check([folder])) == (0, 0)
    assert not accused(folder)


def test_a_copy_whose_half_has_expired_is_not_judged(tmp_path: Path) -> None:
    """It may have been committed in a part of the log that is gone."""
    broker = LightBroker(builder=StoreBuilder(1 << 10, queue_file_size=200))
    half = broker.prepare()
    broker.commit(half)
    broker.flush_ops()
    broker.check()
    while broker.builder.end < 1 << 12:
        broker.send("orders")
    broker.put_back(half)
    broker.send_back(half)
    broker.save()
    broker.expire(2)
    assert broker.builder.expired
    folder = written(broker, tmp_path, clean=False)
    assert shown(check([folder])) == (0, 0)
    assert not accused(folder)


# Random lives, counted by another reader.


def life(seed: int) -> LightBroker:
    """Halves in light queues or not, decided, put back, parked and sent back in any order."""
    choose = Random(seed)
    broker = broker_of(choose.choice(VERSIONS))
    for _ in range(40):
        half = choose.choice(broker.halves)
        match choose.randrange(8):
            case 0 | 1:
                broker.light = choose.random() < 0.5
                broker.prepare()
                broker.light = False
            case 2:
                broker.commit(half)
            case 3:
                broker.roll_back(half)
            case 4:
                broker.send_back(half, choose.choice((RETRY, DEAD)))
            case 5:
                broker.check()
            case 6:
                broker.flush_ops()
            case _:
                broker.send("orders")
        broker.wait(300)
    return broker


def counted(store: Path) -> tuple[int, int]:
    """Counts the same in plain Python, record by record."""
    committed, rolled_back, visible = set[str](), set[str](), Counter[str]()
    numbers, finals, marks = dict[int, Record](), Counter[int](), Counter[int]()
    found = [0, 0]

    def read(key: str) -> None:
        if key not in committed:
            found[key in rolled_back] += 1

    for record in read_log(store):
        key = record.property_map.get("UNIQ_KEY", "")
        copy = (
            record.topic in (RETRY, DEAD) and record.property_map.get("TRAN_MSG") == "true" and not record.transaction
        )
        if record.topic == HALF:
            numbers[record.number] = record
        if is_final(record):
            committed.add(key)
            finals[record.prepared_position] += 1
        for number in numbers_in(record) if record.topic == "RMQ_SYS_TRANS_OP_HALF_TOPIC" else ():
            half = numbers[number]
            marks[number] += 1
            if marks[number] > finals[half.position]:
                finals[half.position] += 1  # a rollback explains the op
                rolled_back.add(key_of(half))
                if visible[key_of(half)]:
                    read(key_of(half))
        if copy or (record.topic in (HALF, PARK) and "INNER_MULTI_DISPATCH" in record.property_map):
            visible[key] += 1
            read(key)
    return found[0], found[1]


@pytest.mark.parametrize("seed", range(8))
def test_random_lives_are_counted_as_by_another_reader(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the log is cut, and however early transactions are forgotten."""
    folder = written(life(seed), tmp_path)
    expected = counted(folder / "store")
    assert shown(check([folder])) == expected
    monkeypatch.setattr(joining, "ROWS_IN_MEMORY", 5)
    for size in (400, 1_100):
        assert shown(check([folder], split=size, jobs=1)) == expected
    assert sum(expected)


@pytest.mark.parametrize("name", ["visible/light_5.3.3", "visible/sent_back_4.9.7"])
def test_a_watch_reports_what_a_check_does(name: str, tmp_path: Path) -> None:
    clock, heard = Clock(), Heard()
    played = PlayedStore(recording(name), tmp_path / "store")
    (tmp_path / "broker.conf").write_bytes((recording_as_left(name) / "broker.conf").read_bytes())
    watched = watch_all_of(played, heard, clock, Random(name), played.dispatch, most=600, passes=(0.1, 1.0, 100.0))
    played.stop()
    end = watched.end()
    same(end, checked(tmp_path / "store"))
    assert shown(end) == RECORDED[name][:2]
    assert not heard.found
