"""Shapes that random lives and mutations came upon, each with an answer of its own."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gapless import check
from gapless.traces.sources.rocketmq.transactions import joined_transactions as joining
from tests.support.rocketmq.store_builder import StoreBuilder
from tests.support.rocketmq.stores import COMMITTED, Record, properties, queue_files
from tests.support.rocketmq.transaction_broker import BROKER, CLIENT
from tests.support.rocketmq.transactions import COUNTER, GROUP, HALF, IMMUNITY, OP, ORIGIN, PARK

FILE = 1 << 16  # bytes of a log file
KEY = {"UNIQ_KEY": "K"}


def half(
    builder: StoreBuilder, pairs: dict[str, str], *, body: bytes = b"p", born: int = 5, flag: int = 0, topic: str = HALF
) -> Record:
    aim = {"TRAN_MSG": "true", "PGROUP": "PG", "REAL_TOPIC": "orders", "REAL_QID": "0"}
    written = properties(pairs | aim)
    return builder.append(Record(topic, body, written, flag=flag, born_time=born, born_host=CLIENT, store_host=BROKER))


def commit(builder: StoreBuilder, record: Record) -> Record:
    final = replace(record, topic="orders", sys_flag=COMMITTED, prepared_position=record.position)
    return builder.append(final)


def op(builder: StoreBuilder, body: str) -> Record:
    return builder.append(Record(OP, body.encode(), properties({"TAGS": "d"}), born_host=BROKER, store_host=BROKER))


def written(builder: StoreBuilder, room: Path, cursors: Sequence[int] = ()) -> Path:
    store = builder.write(room / "store")
    table = {f"{topic}@{GROUP}": {"0": at} for topic, at in zip((HALF, OP), cursors, strict=False)}
    (store / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": table}))
    return store


def rules_broken(store: Path) -> list[str]:
    return [finding.rule for finding in check([store]).violations]


def test_of_two_branches_each_is_put_back_from_its_own_parent(tmp_path: Path) -> None:
    builder, immune = StoreBuilder(FILE), KEY | {IMMUNITY: "2"}
    half(builder, immune)
    half(builder, immune | {COUNTER: "1", ORIGIN: "0"})  # put back while immune
    half(builder, immune | {COUNTER: "1"})  # after a restart the original is put back again
    half(builder, immune | {COUNTER: "2", ORIGIN: "0"})  # and then the first branch
    assert rules_broken(written(builder, tmp_path)) == []


def test_what_was_resumed_does_not_say_that_nothing_has_expired(tmp_path: Path) -> None:
    builder = StoreBuilder(FILE, end=FILE)
    half(builder, KEY | {COUNTER: "0"})
    half(builder, KEY | {COUNTER: "3"})
    assert rules_broken(written(builder, tmp_path)) == []


def test_what_was_set_aside_may_be_of_a_branch_that_has_expired(tmp_path: Path) -> None:
    builder = StoreBuilder(FILE, end=FILE)
    other = half(builder, KEY | {COUNTER: "2"}, born=builder.now)
    builder.append(replace(other, topic=PARK, properties=other.properties.replace(b"TIMES\x012", b"TIMES\x013")))
    assert rules_broken(written(builder, tmp_path)) == []


def test_a_version_that_is_given_up_for_its_age_after_it_was_put_back_is_the_one_that_its_copy_equals(
    tmp_path: Path,
) -> None:
    """A broker that has lost its half cursor gives up all versions, each with its counter raised before.

    Seen with 5.5.0, switched to `enableLmq`: its cursors are in another file then.
    """
    builder = StoreBuilder(FILE)
    half(builder, KEY, flag=5)
    half(builder, KEY | {COUNTER: "1"})  # put back, it has no flag
    half(builder, KEY | {COUNTER: "1"}, flag=5, topic=PARK)
    half(builder, KEY | {COUNTER: "2"}, topic=PARK)
    assert rules_broken(written(builder, tmp_path)) == []


def test_what_is_given_up_for_its_age_is_a_copy_of_some_version(tmp_path: Path) -> None:
    builder = StoreBuilder(FILE)
    half(builder, KEY, flag=5)
    half(builder, KEY | {COUNTER: "1"})
    half(builder, KEY | {COUNTER: "1"}, flag=6, topic=PARK)
    assert rules_broken(written(builder, tmp_path)) == ["transaction/half-is-set-aside-as-it-was"]


def test_a_half_without_a_key_is_decided_by_its_op(tmp_path: Path) -> None:
    builder = StoreBuilder(FILE)
    commit(builder, half(builder, {}))
    op(builder, "0,")
    assert rules_broken(written(builder, tmp_path, (1, 1))) == []


def test_a_bad_entry_says_nothing_of_the_cursors(tmp_path: Path) -> None:
    builder = StoreBuilder(FILE)
    for number in range(4):
        commit(builder, half(builder, {"UNIQ_KEY": f"K{number}"}))
        op(builder, f"{number},")
    store = written(builder, tmp_path, (4, 4))
    (file,) = queue_files(store, (HALF, 0))
    data = bytearray(file.read_bytes())
    data[20 + 11] ^= 1  # the size that the second entry tells
    file.write_bytes(data)
    assert rules_broken(store) == ["queue/entry-has-the-size-of-its-message"]


def test_it_does_not_matter_when_a_transaction_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = StoreBuilder(FILE)
    for number in range(3):  # sent again and again under one key
        commit(builder, half(builder, KEY, born=number))
    op(builder, "0,1,2,")
    store = written(builder, tmp_path, (3, 1))
    at_once = check([store])
    results = []
    for size in range(300, 1300, 50):
        monkeypatch.setattr(joining, "ROWS_IN_MEMORY", 5)
        results.append(check([store], split=size).transactions)
    assert all(result == at_once.transactions for result in results)


def test_every_op_that_departs_is_counted(tmp_path: Path) -> None:
    builder = StoreBuilder(1 << 18)
    half(builder, KEY)
    for _ in range(100):
        op(builder, "x")
    (finding,) = check([written(builder, tmp_path)]).violations
    assert finding.count == 100
