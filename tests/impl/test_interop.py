"""The comparisons of `make interop`, without a broker, and what it says where none can be had."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from gapless.impl.records.errors import Damaged
from gapless.impl.store.core import Settings
from gapless.impl.store.store import Store
from tests.interop import makers, ours, rounds, shuffled
from tests.interop.damage import plant
from tests.interop.files import Contents, changes, overwritten
from tests.interop.halves import comparing, faults, writing
from tests.interop.halves.ledger import COMMIT, OPEN, ROLLBACK, Ledger, Transaction
from tests.interop.remoting import PulledMessages
from tests.interop.written import Message, differences
from tests.support.night import NIGHT
from tests.support.rocketmq import transactions
from tests.support.rocketmq.store_builder import StoreBuilder
from tests.support.rocketmq.stores import Record, properties

QUEUE = ("orders", 1)
ROOT = Path(__file__).parents[2]


def record(number: int) -> Record:
    given = properties({"TAGS": "paid", "KEYS": f"key-{number}", "CLUSTER": "what a broker adds"})
    return Record("orders", b"body %d" % number, given, queue=1, number=number, position=200 * number)


RECORDS = [record(number) for number in range(4)]
MESSAGES = [Message(200 * n, b"body %d" % n, {"TAGS": "paid", "KEYS": f"key-{n}"}) for n in range(4)]


def test_nothing_is_reported_of_messages_that_are_what_was_written() -> None:
    assert differences(QUEUE, MESSAGES, PulledMessages(RECORDS)) == []


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (replace(RECORDS[2], topic="payments"), "queue of message 2 was written as ('orders', 1)"),
        (replace(RECORDS[2], queue=0), "hands out ('orders', 0)"),
        (replace(RECORDS[2], number=3), "number of message 2 was written as 2, the broker hands out 3"),
        (replace(RECORDS[2], position=401), "position of message 2 was written as 400"),
        (replace(RECORDS[2], properties=b"TAGS\x01open\x02"), "tag of message 2 was written as paid"),
        (replace(RECORDS[2], properties=b"TAGS\x01paid\x02KEYS\x01other\x02"), "properties of message 2"),
        (replace(RECORDS[2], body=b"body 3"), "the body of message 2 is not what was written (1 in all)"),
    ],
)
def test_a_message_that_differs_is_reported(changed: Record, expected: str) -> None:
    (line,) = differences(QUEUE, MESSAGES, PulledMessages([*RECORDS[:2], changed, RECORDS[3]]))
    assert line.startswith("orders/1: ")
    assert expected in line


def test_too_few_too_many_and_an_early_end_are_reported() -> None:
    assert differences(QUEUE, MESSAGES, PulledMessages(RECORDS[:3])) == [
        "orders/1: 4 messages were written, the broker hands out 3"
    ]
    assert differences(QUEUE, MESSAGES[:3], PulledMessages(RECORDS)) == [
        "orders/1: 3 messages were written, the broker hands out 4"
    ]
    assert differences(QUEUE, MESSAGES, PulledMessages(RECORDS, "a pull was refused")) == [
        "orders/1: a pull was refused"
    ]


def test_bytes_that_a_broker_should_have_left_alone_are_reported(tmp_path: Path) -> None:
    builder = StoreBuilder()
    records = [builder.append(Record("orders", b"body", queue=1)) for _ in range(5)]
    before = Contents.of(builder.write(tmp_path / "before"))
    more = builder.append(Record("orders", b"another", queue=1))
    after = Contents.of(builder.write(tmp_path / "after"))
    end = before.end_of(records[-1].position)
    assert end == more.position
    assert overwritten(before, after, end, [QUEUE]) == []
    assert changes(before, after) == "changed: checkpoint, commitlog/ (1), config/ (1), consumequeue/ (1)"
    log, queue = "commitlog/" + 20 * "0", "consumequeue/orders/1/" + 20 * "0"
    assert overwritten(before, with_flip(after, log, end - 1), end, [QUEUE]) == [
        f"commitlog: the byte at {end - 1} is not what it was"
    ]
    assert overwritten(before, with_flip(after, queue, 4 * 20 + 7), end, [QUEUE]) == [
        "consumequeue/orders/1: entry 4 is not what it was"
    ]


def with_flip(contents: Contents, file: str, at: int) -> Contents:
    data = bytearray(contents.files[file])
    data[at] ^= 1
    return Contents(contents.files | {file: bytes(data)})


@pytest.mark.slow
def test_both_readers_tell_every_fault_that_is_planted_and_nothing_else(tmp_path: Path) -> None:
    written, wrong = makers.make_store(tmp_path, clean=True)
    assert wrong + rounds.look(tmp_path, written).wrong == []
    store = Store.open(tmp_path, Settings(pre_allocate=False))
    assert ours.read(store, tmp_path, written).wrong == []
    planted = plant(tmp_path, written)  # while it is open: it would not open a store with all of them
    lines = ours.read(store, tmp_path, written).wrong
    store.abandon()
    queues = [rounds.name_of(fault.queue) for fault in planted]
    assert {line.partition(":")[0] for line in rounds.look(tmp_path, written).wrong} == {*queues}
    assert {line.partition(":")[0] for line in lines} < {*queues}
    by_name = {
        fault.what: "".join(line for line in lines if line.startswith(f"{queue}: "))
        for fault, queue in zip(planted, queues, strict=True)
    }
    assert "no record begins" in by_name["an entry points one byte off"]
    assert "where message 31 of" in by_name["an entry is missing"]
    assert "where message 31 of" in by_name["a record has another number"]
    assert "the body of message 30 is not what was written" in by_name["a body is another"]
    assert by_name["an entry has another tag"] == ""  # a reader of all messages does not filter by it
    with pytest.raises(Damaged):
        Store.open(tmp_path)


@pytest.mark.slow
def test_a_store_that_was_abandoned_has_what_a_broker_is_to_recover(tmp_path: Path) -> None:
    written, wrong = makers.make_store(tmp_path, clean=False)
    assert wrong + rounds.look(tmp_path, written, missing=written.unindexed).wrong == []
    assert (tmp_path / "abort").exists()
    assert written.unindexed >= makers.UNINDEXED
    (complaint,) = rounds.look(tmp_path, written).wrong[:1]
    assert complaint.endswith(f"all but {written.unindexed} of their entries; expected {written.count}, 0")
    with Store.open(tmp_path) as store:  # our own recovery
        assert ours.read(store, tmp_path, written).wrong == []
    assert rounds.look(tmp_path, written).wrong == []


# -- transactions ----------------------------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Room for a store, and the settings of the broker that is to open it."""
    (tmp_path / "broker.conf").write_text("transactionCheckMax=5\n")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    "clean", [True, False] if NIGHT else [False], ids=lambda clean: "closed" if clean else "abandoned"
)
def test_a_store_with_transactions_of_every_kind_is_ours_to_go_on_with(home: Path, *, clean: bool) -> None:
    ledger = writing.write(home, clean=clean)
    assert len(ledger.of_fate(OPEN)) == (31 if clean else 52)
    assert bool(ledger.asked_again) != clean
    assert comparing.judge(ledger, "strict").wrong == []
    ledger.asked_again.clear()  # our recovery finds them
    assert [step.wrong for step in writing.visit(ledger) if step.wrong] == []
    assert {body.split(b"/")[1] for body in ledger.of_fate(OPEN)} == {b"never"}
    assert comparing.judge(ledger, "strict").wrong == []


def test_what_is_asked_and_seen_is_compared_with_the_ledger(home: Path) -> None:
    ledger = Ledger(home)
    ledger.transactions[b"commit/none/1"] = Transaction(QUEUE, COMMIT)
    ledger.transactions[b"rollback/none/2"] = Transaction(QUEUE, ROLLBACK)

    def complaints(*bodies: bytes, twice: tuple[bytes, ...] = ()) -> list[str]:
        found = PulledMessages([replace(RECORDS[0], body=body) for body in bodies])
        return comparing.compare(ledger, lambda _: found, "it hands out", twice=twice).wrong

    assert complaints(b"commit/none/1") == []
    assert complaints() == [
        "orders/1: what was consumed before is not there any more",
        "orders/1: it hands out commit/none/1 0 times, not 1",
    ]
    assert complaints(b"commit/none/1", b"rollback/none/2") == ["orders/1: it hands out rollback/none/2 1 times, not 0"]
    ledger.seen.clear()
    assert complaints(b"commit/none/1", b"commit/none/1") == ["orders/1: it hands out commit/none/1 2 times, not 1"]
    assert complaints(b"commit/none/1", b"commit/none/1", twice=(b"commit/none/1",)) == []
    asked = comparing.compare_asked([b"commit/none/1"], [b"open/commit/3"], "it asks")
    assert asked.wrong == [
        "it asks about commit/none/1, which is decided",
        "it asks nobody about open/commit/3, which is open",
    ]


def test_faults_in_transactions_are_reported_by_both_judges(home: Path) -> None:
    ledger, planted = faults.write(home)
    assert len({fault.body for fault in planted}) == 5
    departed = {departure.rule for departure in transactions.departures(home / "store")}
    assert departed >= {"TX3", "TX9"}
    assert any("the verdict is departs" in line for line in comparing.judge(ledger, "rocketmq").wrong)


# -- where no broker can be had --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [(4, 9), (5, 3), (5, 5)])
def test_a_random_store_has_traits_that_its_broker_has_and_that_go_together(version: tuple[int, int]) -> None:
    met = set()
    for seed in range(100):
        layout, traits = shuffled.draw(Random(seed), version)
        for trait in traits:
            assert shuffled.TRAITS[trait].since <= version
            assert not shuffled.TRAITS[trait].excludes & set(traits)
        assert len(layout.lives) == len(layout.later) + 1 == shuffled.LIVES
        met |= {*traits}
    assert met == {name for name, trait in shuffled.TRAITS.items() if trait.since <= version}


def test_without_maven_or_a_java_it_is_skipped_in_one_line(tmp_path: Path) -> None:
    assert run(tmp_path) == (
        0,
        "skipped: Maven is not installed (no `mvn` on the PATH; on Debian: apt install maven)\n",
    )
    command(tmp_path, "mvn", "exit 1")
    assert run(tmp_path) == (0, "skipped: Java 17 or later is not installed (no `java` on the PATH)\n")
    command(tmp_path, "java", "echo '    java.specification.version = 1.8' >&2")
    assert run(tmp_path) == (0, f"skipped: Java 17 or later is needed, and {tmp_path}/java is 8\n")


def test_jars_that_cannot_be_fetched_are_a_failure(tmp_path: Path) -> None:
    command(tmp_path, "java", "echo '    java.specification.version = 21' >&2")
    command(tmp_path, "mvn", "echo '[ERROR] no such host'; exit 1")
    assert run(tmp_path) == (1, "Maven could not bring RocketMQ 5.5.0:\n[ERROR] no such host\n")


def command(folder: Path, name: str, does: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{does}\n")
    (folder / name).chmod(0o755)


def run(path: Path) -> tuple[int, str]:
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(path)}
    arguments = ["--build", str(path / "build")]
    done = subprocess.run(
        [sys.executable, "-m", "tests.interop", *arguments],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout
