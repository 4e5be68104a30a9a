"""Reports about transactions, timers, pop, keys, tiers, compacted topics, and groups of replicas."""

from __future__ import annotations

import shutil
import struct
import zlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

from tests.support.reports.log_and_queues import one_fault
from tests.support.reports.report import PublicReport, altered, as_recorded
from tests.support.rocketmq import transaction_damage
from tests.support.rocketmq.damage import Bench, Pick
from tests.support.rocketmq.stores import COMMITTED, TRANSACTION, Record, read_log

TIMED, GROUP_OF_ONE = "layouts/timer_lives_5.5.0", "layouts/dledger_lives_5.5.0"
OPS = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
UNIT = struct.Struct(">iqiqiqiiq")  # of the timer log


def op_queue_deleted(store: Path) -> None:
    shutil.rmtree(store / "consumequeue" / OPS)


def one_id_twice(store: Path) -> None:
    """A client sends a half again, under the same key and at the same time, and commits both."""
    bench = Bench(store, Pick("any", "9909"))
    whole = [record for record in bench.records if record.sys_flag & TRANSACTION == COMMITTED]
    versions = Counter(record.property_map.get("UNIQ_KEY") for record in bench.records)
    one, other = [final for final in whole if versions[final.property_map["UNIQ_KEY"]] == 2][:2]
    before, after = (record.property_map["UNIQ_KEY"].encode() for record in (other, one))
    for record in bench.records:
        if before in record.properties:
            bench.lay(replace(record, properties=record.properties.replace(before, after)))


def timer_unit_of_another_message(store: Path) -> None:
    """The log was truncated, and has another message where the unit's was."""
    file = store / "timerlog" / f"{0:020d}"
    data = bytearray(file.read_bytes())
    fields = list(UNIT.unpack_from(data, 0))
    other = next(record for record in read_log(store) if record.topic == "orders")
    fields[5:7] = other.position, other.size
    UNIT.pack_into(data, 0, *fields)
    file.write_bytes(data)


def timers_read_beyond_their_queue(store: Path) -> None:
    """The queue of the timers was truncated, and their checkpoint was not: both its numbers, the master's too."""
    file = store / "config" / "timercheck"
    data = bytearray(file.read_bytes())
    struct.pack_into(">qq", data, 16, 5000, 5000)
    file.write_bytes(data)


def cancelled_and_delivered(store: Path) -> None:
    """A message that cancels names another one of the same time, which was delivered."""
    bench = Bench(store, Pick("any", "7991"))
    waits = [record for record in bench.records if record.topic == "rmq_sys_wheel_timer"]
    came = {record.property_map.get("UNIQ_KEY") for record in bench.records if record.topic == "orders"}
    cancels, key = next(
        (record, other.property_map["UNIQ_KEY"])
        for record in waits
        for other in waits
        if "TIMER_DEL_UNIQKEY" in record.property_map
        and other.position < record.position
        and other.property_map["TIMER_OUT_MS"] == record.property_map["TIMER_OUT_MS"]
        and other.property_map["UNIQ_KEY"] in came
    )
    named = cancels.property_map["TIMER_DEL_UNIQKEY"][-len(key) :]
    bench.lay(replace(cancels, properties=cancels.properties.replace(named.encode(), key.encode())))


def timers_counted_below_zero(store: Path) -> None:
    file = store / "config" / "timermetrics"
    file.write_text(file.read_text().replace('"count":', '"count":-'))


def newest_index_file_gone(store: Path) -> None:
    max((store / "index").iterdir()).unlink()


def compacted_records_lost(store: Path) -> None:
    """The last page of what a compaction wrote is zeros."""
    files = sorted((store / "compaction" / "compactionLog").rglob("0*"))
    file = next(one for one in files if one.is_file() and any(one.read_bytes()))
    data = file.read_bytes().rstrip(b"\0")
    file.write_bytes(data[:-4096].ljust(file.stat().st_size, b"\0"))


def committed_beyond_the_end(store: Path) -> None:
    (file,) = store.glob("dledger-*/checkpoint")
    file.write_text("committedIndex=100000\nendIndex=100000\n")


def epochs_out_of_order(store: Path) -> None:
    lines = "3-0\n2-4096\n"
    (store / "epochFileCheckpoint").write_text(f"2\n{zlib.crc32(lines.encode()) & 0x7FFFFFFF}\n{lines}")


def _retries(bench: Bench) -> list[Record]:
    return [record for record in bench.records if record.topic.startswith("%RETRY%")]


def retry_of_something_else(store: Path) -> None:
    """A message that was popped and not acknowledged is in no retry topic: its retry is another one's."""
    bench = Bench(store, Pick("any", "7914"))
    retry = _retries(bench)[0]
    key = retry.property_map["UNIQ_KEY"].encode()
    bench.lay(replace(retry, properties=retry.properties.replace(key, b"F" * 32)))


def retry_twice(store: Path) -> None:
    """Two retries of one message."""
    bench = Bench(store, Pick("any", "7724"))
    shapes: dict[tuple[str, int, int], Record] = {}
    for record in _retries(bench):
        one = shapes.setdefault((record.topic, len(record.body), len(record.properties)), record)
        if one is not record:
            bench.lay(replace(record, body=one.body, properties=one.properties))
            return
    raise AssertionError("no two of one size")


TRANSACTIONS = (
    PublicReport(
        "rocketmq 544",
        "With `CHECK_IMMUNITY_TIME_IN_SECONDS` a half was passed over, neither asked about nor put back",
        "The half cursor has passed a half without op, newer version or parked copy",
        altered("lmq", one_fault(transaction_damage.mark_lost, "544")),
        "departs", "violation", "checkpoint/half-cursor-passes-no-undecided-half", "`lmq`, altered",
    ),
    PublicReport(
        "rocketmq 1517 · rocketmq 549",
        "The end of the op queue was taken for an illegal offset; decided halves were asked about",
        "The op cursor is beyond the last op",
        altered("lmq", one_fault(transaction_damage.op_cursor_past_the_end, "1517")),
        "departs", "violation", "checkpoint/op-cursor-stays-within-the-ops-of-the-log", "`lmq`, altered",
    ),
    PublicReport(
        "rocketmq 2133",
        "Deleting a group deleted the op queue too; a storm of checks followed",
        "Ops in the log, and no queue of them",
        altered("lmq", op_queue_deleted),
        "inconclusive", "reason", "no operator can delete its topic",
        "`lmq`, altered; booted 5.5.0, which leaves it so",
    ),
    PublicReport(
        "rocketmq 1540 · rocketmq 1543",
        "A delay level on a half sent it round and round between two system topics",
        "A half that was delayed, and an op with a number that two halves have",
        as_recorded("odd/delayed_half_5.3.3", client=True),
        "inconclusive", "reason", "sent with a delay cannot be judged", "`odd/delayed_half_5.3.3`, booted 5.3.3",
    ),
    PublicReport(
        "rocketmq 5574 · rocketmq 7933 · rocketmq 10199",
        "A transaction that was committed is committed again, by a repeated request or by a check whose op was late",
        "Two finals of one half",
        as_recorded("odd_clients"),
        "conforms", "anomaly", "commit_again", "`odd_clients`, booted 5.5.0",
        remark="brokers do not promise more; `--profile strict` departs",
    ),
    PublicReport(
        "rocketmq 6795",
        "Consumers of a light queue receive a half before its commit, and after its rollback",
        "An entry of a light queue leads to a half, which was rolled back",
        as_recorded("reports/half_in_light_queue_5.5.0"),
        "conforms", "anomaly", "show_rolled_back", "`reports/half_in_light_queue_5.5.0`, booted 5.5.0",
        remark="before its decision it is `show_undecided`; `--profile strict` departs",
    ),
    PublicReport(
        "rocketmq 8158 · rocketmq 2694",
        "A commit is accepted after a rollback",
        "An op, and a final later",
        as_recorded("odd_clients"),
        "conforms", "anomaly", "commit_after_rolling_back", "`odd_clients`, booted 5.5.0",
        remark="`--profile strict` departs",
    ),
    PublicReport(
        "rocketmq 8311",
        "A half is given up though it was decided: the ops were not read to their end",
        "A parked copy of a half that has its op",
        as_recorded("odd_clients"),
        "conforms", "anomaly", "park_after_a_decision", "`odd_clients`, booted 5.5.0",
        remark="`--profile strict` departs",
    ),
    PublicReport(
        "rocketmq 615 · rocketmq 9320",
        "The time in which a half must not be asked about uses up its checks",
        "Put back with a higher counter while it was immune",
        as_recorded("immunity"),
        "conforms", "anomaly", "put_back_while_immune", "`immunity`, booted 5.5.0",
        remark="`--profile strict` departs",
    ),
    PublicReport(
        "rocketmq 9909",
        "Two messages with one id (its client had sent again)",
        "A half that was sent twice under one key",
        altered("lmq", one_id_twice),
        "conforms", "anomaly", "prepare_again", "`lmq`, altered",
        remark="the id is the client's; `--profile strict` departs",
    ),
)  # fmt: skip
TIMERS = (
    PublicReport(
        "rocketmq 10668",
        "After a truncation the timer log names messages that others have replaced; delivery stands still at the first",
        "A unit that points at a plain message",
        altered(TIMED, timer_unit_of_another_message),
        "departs", "violation", "timer/unit-names-a-message-that-waits", f"`{TIMED}`, altered",
    ),
    PublicReport(
        "rocketmq 7480",
        "After a truncation the timers' checkpoint is ahead of their queue: no message with a time is taken in",
        "`timercheck` says 5,000 where the queue has 295 messages",
        altered(TIMED, timers_read_beyond_their_queue),
        "conforms", "nothing", "",
        f"`{TIMED}`, altered; booted 5.5.0 and 5.3.3, which take in all that follows",
        remark="they begin at the queue's end instead",
    ),
    PublicReport(
        "rocketmq 7991",
        "A message with a time that was cancelled is delivered, if it had to roll",
        "A message that was cancelled in time, and is in its topic",
        altered(TIMED, cancelled_and_delivered),
        "conforms", "nothing", "", f"`{TIMED}`, altered",
        remark="which messages a slot cancels is not judged",
    ),
    PublicReport(
        "rocketmq 7381",
        "The counts of waiting messages fall below zero",
        "Negative counts in `timermetrics`",
        altered(TIMED, timers_counted_below_zero),
        "conforms", "nothing", "", f"`{TIMED}`, altered",
        remark="statistics; nothing is delivered by them",
    ),
)  # fmt: skip
POP = (
    PublicReport(
        "rocketmq 7914",
        "Messages that were popped and not acknowledged come to no retry topic",
        "A message of a pop checkpoint that has no retry",
        altered("pop_retry", retry_of_something_else),
        "conforms", "nothing", "", "`pop_retry`, altered",
        remark="a broker [passes by before a retry is there](rocketmq.md#pop), and the report lists it as not checked",
    ),
    PublicReport(
        "rocketmq 7724",
        "One message comes to the retry topic twice",
        "Two equal records in the retry topic",
        altered("pop_retry", retry_twice),
        "conforms", "nothing", "", "`pop_retry`, altered",
        remark="delivered at least once is what pop promises",
    ),
)  # fmt: skip
KEYS = (
    PublicReport(
        "rocketmq 8007",
        "A start after a crash deletes the last index file, and its messages are not found by key",
        "The newest file of `index/` is missing",
        altered("layouts/index_kill_clean_5.5.0", newest_index_file_gone),
        "inconclusive", "reason", "are not in the hash index, and others are",
        "`layouts/index_kill_clean_5.5.0`, altered",
    ),
    PublicReport(
        "rocketmq 10656",
        "A restart takes the end time of a tiered index file from its begin",
        "Headers whose end lies before their begin",
        as_recorded("layouts/tieredindex_lives_5.5.0"),
        "conforms", "nothing", "", "`layouts/tieredindex_lives_5.5.0`, booted 5.5.0",
        remark="no search looks at it ([docs](rocketmq-tiered.md#index))",
    ),
)  # fmt: skip
COPIES = (
    PublicReport(
        "rocketmq 9371 · rocketmq 7035",
        "Tiered storage deletes messages before the entries that name them",
        "Entries below the oldest tiered file of messages",
        as_recorded("layouts/tiered_expired_5.5.0"),
        "conforms", "nothing", "", "`layouts/tiered_expired_5.5.0`, booted 5.5.0",
        remark="legal on disk: they have expired",
    ),
    PublicReport(
        "rocketmq 6497",
        "What a compaction writes is not flushed before the old files go",
        "Entries of a compacted queue whose records are zeros",
        altered("layouts/compacted_first_5.5.0", compacted_records_lost),
        "departs", "violation", "compaction/compacted-entry-names-a-message",
        "`layouts/compacted_first_5.5.0`, altered",
    ),
    PublicReport(
        "rocketmq 6587",
        "After a restart a compacted topic hands out nothing (5.1.0)",
        "Two lives of a broker that has the repair",
        as_recorded("layouts/compacted_lives_5.5.0"),
        "conforms", "note", "compacted topics agree with the log", "`layouts/compacted_lives_5.5.0`, booted 5.5.0",
        remark="a control: of the fault, messages would be missing",
    ),
)  # fmt: skip
REPLICAS = (
    PublicReport(
        "dledger 316",
        "After a truncation a member knows more entries to be committed than it has; elected, it serves nothing",
        "`checkpoint` says 100,000 of a log of a thousand entries",
        altered(GROUP_OF_ONE, committed_beyond_the_end),
        "conforms", "nothing", "",
        f"`{GROUP_OF_ONE}`, altered; booted 5.5.0 and 4.9.7, which take messages",
        remark="the log is whole, and so is what is served",
    ),
    PublicReport(
        "rocketmq 9942",
        "The epochs of a replica do not rise",
        "Epoch 2 behind epoch 3 in `epochFileCheckpoint`",
        altered("lmq", epochs_out_of_order),
        "conforms", "nothing", "", "`lmq`, altered",
        remark="epochs are read where replicas are compared (`gapless compare`)",
    ),
)  # fmt: skip
STAGES = {
    "Transactions": TRANSACTIONS,
    "Timers": TIMERS,
    "Pop": POP,
    "Keys": KEYS,
    "Tiered storage and compacted topics": COPIES,
    "DLedger and the controller": REPLICAS,
}
