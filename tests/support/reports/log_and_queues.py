"""Reports about RocketMQ's log, its queues, light queues and cursors."""

from __future__ import annotations

import json
import re
import shutil
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tests.support.reports.report import PublicReport, altered, as_recorded
from tests.support.rocketmq import damage
from tests.support.rocketmq.damage import Bench, Pick, Place
from tests.support.rocketmq.stores import ENTRY, Queue, Record, queue_files, queues_of, read_log

WHOLE = "layouts/lmq_lives_5.5.0"
WITH_CURSORS = "layouts/ext_lives_5.5.0"
LIGHT: Queue = ("%LMQ%q3", 0)
NUMBER = 40  # of the message in that light queue


def one_fault(fault: Callable[[Path, Pick], object], seed: str, place: Place = "any") -> Callable[[Path], None]:
    """One of the faults that damage to stores is made of, always at the same place."""

    def change(store: Path) -> None:
        fault(store, Pick(place, seed))

    return change


def queues_cut_to_nothing(store: Path) -> None:
    for queue in queues_of(store):
        write_entries(queue_files(store, queue), b"")


def dispatch_stopped(store: Path) -> None:
    """No queue has an entry of what was written last, though the stop was orderly."""
    records = read_log(store)
    _without_entries(store, records[-60].position, records[-1].end)


def dispatch_began_late(store: Path) -> None:
    """A start took the log's end for where the queues end; what came later stands right behind the last entry."""
    records = read_log(store)
    _without_entries(store, records[len(records) // 2].position, records[len(records) // 2 + 40].position)


def _without_entries(store: Path, low: int, high: int) -> None:
    """Leave out the entries of a stretch of the log, in all queues; later ones move up."""
    for queue in queues_of(store):
        files = queue_files(store, queue)
        data = b"".join(file.read_bytes() for file in files)
        entries = [data[at : at + ENTRY.size] for at in range(0, len(data) - ENTRY.size + 1, ENTRY.size)]
        kept = [raw for raw in entries if not (ENTRY.unpack(raw)[1] and low <= ENTRY.unpack(raw)[0] < high)]
        write_entries(files, b"".join(kept))


def write_entries(files: list[Path], data: bytes) -> None:
    """The entries of a queue, over all its files; what is left of them is empty."""
    size = files[0].stat().st_size
    for nth, file in enumerate(files):
        file.write_bytes(data[nth * size : (nth + 1) * size].ljust(size, b"\0"))


def light_number_given_twice(store: Path) -> None:
    """Two messages took a number at once: the second one's entry was taken for one that is there already."""
    bench = Bench(store, Pick("any", "7511"))
    record = _light_message(bench)
    found = record.property_map
    numbers = found["INNER_MULTI_QUEUE_OFFSET"].split(",")
    numbers[found["INNER_MULTI_DISPATCH"].split(",").index(LIGHT[0])] = str(NUMBER - 1)
    before, after = (
        f"INNER_MULTI_QUEUE_OFFSET\x01{text}\x02".encode()
        for text in (found["INNER_MULTI_QUEUE_OFFSET"], ",".join(numbers))
    )
    bench.lay(replace(record, properties=record.properties.replace(before, after)))
    light_entry_left_out(store)


def _light_message(bench: Bench) -> Record:
    data = b"".join(file.read_bytes() for file in queue_files(bench.store, LIGHT))
    position, _, _ = ENTRY.unpack_from(data, NUMBER * ENTRY.size)
    return next(record for record in bench.records if record.position == position)


def light_entry_left_out(store: Path) -> None:
    """A message took its number in a light queue and got no entry there; later entries have moved up."""
    files = queue_files(store, LIGHT)
    data, at = b"".join(file.read_bytes() for file in files), NUMBER * ENTRY.size
    write_entries(files, data[:at] + data[at + ENTRY.size :])


def topic_forgotten(store: Path) -> None:
    """A topic is gone from `topics.json` and its backup, and the folder of its queues with it."""
    shutil.rmtree(store / "consumequeue" / "orders")
    for file in (store / "config").glob("topics.json*"):
        found = json.loads(file.read_text())
        del found["topicConfigTable"]["orders"]
        file.write_text(json.dumps(found))


def confirmed_beyond_the_end(store: Path) -> None:
    file = store / "checkpoint"
    data = bytearray(file.read_bytes())
    struct.pack_into(">q", data, 32, read_log(store)[-1].end + 100_000)
    file.write_bytes(data)


def _with_cursor(file: str, before: str, to: int) -> Callable[[Path], None]:
    """The first cursor behind this text is another."""

    def change(store: Path) -> None:
        path = store / "config" / file
        text, moved = re.subn(rf"({before})\d+", rf"\g<1>{to}", path.read_text(), count=1)
        assert moved == 1
        path.write_text(text)

    return change


def cursors_in_the_other_file(store: Path) -> None:
    """All cursors are in the file of a broker without light queues."""
    for file in (store / "config").glob("lmqConsumerOffset.json*"):
        file.rename(file.with_name(file.name.replace("lmqConsumer", "consumer")))


def levels_forgotten(store: Path) -> None:
    for file in (store / "config").glob("delayOffset.json*"):
        file.write_text('{"dataVersion":{"counter":1,"stateVersion":0,"timestamp":0},"offsetTable":{}}')


MISSING = "queue/every-message-has-its-entry"
POINTS = "queue/entry-points-at-its-message"
FOLLOW = "queue/numbers-of-a-queue-follow-one-another"
DAMAGED = f"`{WHOLE}`, altered"

LOG = (
    PublicReport(
        "rocketmq 467",
        "After a crash a record that is not valid was counted, and one message was missing",
        "A record in the middle of the log whose checksum is wrong",
        altered(WHOLE, one_fault(damage.body_flipped, "467")),
        "departs", "violation", "log/body-has-its-checksum", DAMAGED,
    ),
    PublicReport(
        "ROCKETMQ 321",
        "A log file that could not be deleted was passed over, later ones were deleted",
        "A log file is missing between others",
        altered("midlife", one_fault(damage.log_file_missing, "321")),
        "departs", "violation", "log/record-begins-where-the-last-one-ends", "`midlife`, altered",
    ),
    PublicReport(
        "rocketmq 2706",
        "A flush that failed was logged and counted",
        "The log ends before what its checkpoint calls flushed and its clients call acknowledged",
        altered("lmq", one_fault(damage.tail_lost, "2706", "last"), client=True),
        "departs", "violation", "log/what-was-flushed-is-still-in-the-log", "`lmq` with its client log, altered",
    ),
    PublicReport(
        "rocketmq 6703",
        "After a crash `confirmOffset` stays behind the log's last record",
        "The position in `checkpoint` lies 100,000 bytes beyond the end",
        altered(WHOLE, confirmed_beyond_the_end),
        "conforms", "nothing", "", DAMAGED,
        remark="[no promise](rocketmq.md#n21)",
    ),
    PublicReport(
        "rocketmq 10666",
        "A slave that truncates its log leaves valid records behind the end, which a start after a crash finds again",
        "A whole record behind the log's end, just where the last one ends",
        altered(WHOLE, one_fault(damage.stale_record, "10666")),
        "conforms", "note", "the records behind that are old bytes of an earlier truncation", DAMAGED,
        remark="which records were confirmed is known to the other replicas alone",
    ),
)  # fmt: skip
QUEUES = (
    PublicReport(
        "rocketmq 6570",
        "A message that could not be appended took a number",
        "Number k is followed by k + 2",
        altered(WHOLE, one_fault(damage.number_left_out, "6570")),
        "departs", "violation", FOLLOW, DAMAGED,
    ),
    PublicReport(
        "rocketmq 2865",
        "Batches that were sent at the same time to a DLedger broker took the same numbers; some could not be consumed",
        "Two messages of a queue with one number, the second of which has no entry",
        altered(WHOLE, one_fault(damage.number_repeated, "2865")),
        "departs", "violation", FOLLOW, DAMAGED,
    ),
    PublicReport(
        "rocketmq 7689",
        "A master of a controller group started again and gave the numbers of unconfirmed messages to new ones",
        "The last message has the number of the one before it",
        altered(WHOLE, one_fault(damage.number_repeated, "7689", "last")),
        "departs", "violation", FOLLOW, DAMAGED,
    ),
    PublicReport(
        "rocketmq 8032",
        "A start of a DLedger broker after a crash cut all queues to nothing",
        "A whole log, and queue files of zeros",
        altered(WHOLE, queues_cut_to_nothing),
        "departs", "violation", MISSING, f"{DAMAGED}; booted 5.5.0, which builds them again",
    ),
    PublicReport(
        "ROCKETMQ 320 · rocketmq 7902",
        "Dispatch was behind, or its thread had died, and the stop counted as clean",
        "No `abort`, and all queues end before the log does",
        altered(WHOLE, dispatch_stopped),
        "departs", "violation", MISSING, DAMAGED,
    ),
    PublicReport(
        "rocketmq 405",
        "After a start dispatch began at the log's end",
        "Forty records without entries; later entries stand right behind the last one before",
        altered(WHOLE, dispatch_began_late),
        "departs", "violation", POINTS, DAMAGED,
    ),
    PublicReport(
        "rocketmq 678",
        "The checkpoint tells of entries that were not on disk: a start after a power loss does not build them",
        "Three entries of zeros in a queue that continues behind them",
        as_recorded("odd/skipped_first_before_5.5.0"),
        "departs", "violation", MISSING, "`odd/skipped_first_before_5.5.0`: a broker's, three entries zeroed",
    ),
    PublicReport(
        "rocketmq 8915",
        "After such a loss a clean start puts the next message into the first empty slot",
        "Entries stand one slot too early",
        as_recorded("odd/skipped_first_5.5.0"),
        "departs", "violation", POINTS, "`odd/skipped_first_5.5.0`, booted 5.5.0 (and 5.3.3; 4.9.7 does not do it)",
    ),
    PublicReport(
        "rocketmq 495",
        "Old entries behind a truncation were live again after a second crash",
        "A queue continues where old slots end",
        as_recorded("odd/ghosts_after_5.5.0"),
        "departs", "violation", FOLLOW, "`odd/ghosts_after_5.5.0`, booted 5.5.0, 5.3.3 and 4.9.7",
    ),
    PublicReport(
        "rocketmq 2571",
        "An entry that reaches beyond the log's end is not cut off at a start",
        "Entries follow an old slot that reaches beyond the end",
        as_recorded("odd/slot_over_end_after_clean_4.9.7"),
        "departs", "violation", MISSING, "`odd/slot_over_end_after_clean_4.9.7`, booted 4.9.7",
    ),
    PublicReport(
        "rocketmq 7355 · rocketmq 1397",
        "A DLedger broker that crashed does not rebuild the tails of its queues: *logic queue order maybe wrong*",
        "Queues were cut too short, and later entries moved up",
        as_recorded("odd/dledger_cut_5.3.3"),
        "departs", "violation", POINTS, "`odd/dledger_cut_5.3.3`, booted 5.3.3",
    ),
    PublicReport(
        "rocketmq 7264",
        "A slave keeps the queues of a topic that its master deleted",
        "The new topic's entries on the slave stand behind the old ones",
        as_recorded("odd/slave_topic_made_anew"),
        "departs", "violation", POINTS, "`odd/slave_topic_made_anew`, booted 5.3.3",
    ),
    PublicReport(
        "rocketmq 8600 · rocketmq 8699",
        "A broker that is switched from queue files to RocksDB hands out no older messages",
        "Queues in a database that lack the log's first message, next to files of the same queues",
        as_recorded("odd/rocksdb_switched_5.5.0"),
        "departs", "violation", "queue/no-entry-before-it-is-missing",
        "`odd/rocksdb_switched_5.5.0`, booted 5.5.0 (and 5.3.3)",
    ),
    PublicReport(
        "rocketmq 9728 · rocketmq 10108",
        "An empty queue file behind a full one: 4.9 and 5.3 may not start; later ones take it for an entry",
        "A file of zeros behind the full one",
        as_recorded("reports/empty_last_file_after_clean_5.5.0"),
        "conforms", "hazard", "queue/message-of-the-entry-is-in-the-log",
        "`reports/empty_last_file_after_clean_5.5.0`; booted 5.5.0, 5.3.3 and 4.9.7, which then **depart**",
    ),
    PublicReport(
        "rocketmq 8539",
        "A slave that is made a master while it runs gives numbers again",
        "Ten messages with numbers from 0, whose entries stand behind fifty others",
        as_recorded("reports/slave_promoted_while_running_4.9.7"),
        "departs", "violation", FOLLOW, "`reports/slave_promoted_while_running_4.9.7`, booted 4.9.7",
    ),
    PublicReport(
        "rocketmq 9826",
        "A broker under load lost topics from `topics.json`, and their folders in `consumequeue/`",
        "Messages whose topic has neither",
        altered(WHOLE, topic_forgotten),
        "conforms", "note", "queues have messages in the log and no file", DAMAGED,
        remark="so does an operator's deletion, which nothing tells apart",
    ),
)  # fmt: skip
LIGHTS = (
    PublicReport(
        "rocketmq 7511 · rocketmq 8762",
        "Two messages took the same number in a light queue, and one cannot be consumed",
        "A message whose light number is that of the one before it, and has no entry",
        altered(WHOLE, light_number_given_twice),
        "departs", "violation", FOLLOW, DAMAGED,
    ),
    PublicReport(
        "rocketmq 8693",
        "A message of a system topic takes a number in a light queue and is not entered there",
        "Light entries stand one slot too early from there on",
        altered(WHOLE, light_entry_left_out),
        "departs", "violation", POINTS, DAMAGED,
    ),
    PublicReport(
        "rocketmq 6473",
        "A message that a consumer sends back is entered in its light queues a second time",
        "Two records of one message, each with entries in the same light queue",
        as_recorded("layouts/lmq_again_4.9.7"),
        "conforms", "nothing", "", "`layouts/lmq_again_4.9.7`, booted 4.9.7",
        remark="each record is entered where it says; a consumer gets it twice, as it may",
    ),
)  # fmt: skip
CURSORS = (
    PublicReport(
        "rocketmq 8239",
        "A consumer read what was not on disk; after a crash its cursor is ahead, and messages are passed over",
        "A group's cursor beyond the end of its queue",
        altered(WITH_CURSORS, _with_cursor("consumerOffset.json", r'"orders@CG_sql":\{\s*0:', 1_000_000)),
        "conforms", "hazard", "cursor/cursor-of-the-group-stays-within-its-queue", f"`{WITH_CURSORS}`, altered",
    ),
    PublicReport(
        "rocketmq 7077",
        "*schedule CQ offset invalid*: the cursor of a delay level is beyond its queue",
        "`delayOffset.json` says 5,000 where the level has 8 messages",
        altered(WITH_CURSORS, _with_cursor("delayOffset.json", r'"offsetTable":\{\s*1:', 5000)),
        "departs", "violation", "cursor/cursor-of-the-level-stays-within-its-queue",
        f"`{WITH_CURSORS}`, altered; booted 5.5.0, which corrects it at its start",
    ),
    PublicReport(
        "rocketmq 6881",
        "An upgrade wrote `delayOffset.json` before it had read it: every delayed message was delivered again",
        "A table of cursors without any",
        altered(WITH_CURSORS, levels_forgotten),
        "conforms", "nothing", "", f"`{WITH_CURSORS}`, altered; booted 5.5.0, which delivers all again",
        remark="a level without a cursor begins at 0, as a new one does",
    ),
    PublicReport(
        "rocketmq 7087",
        "After an upgrade with `enableLmq` all consumers have lost their cursors",
        "`enableLmq` in the settings, and all cursors in `consumerOffset.json`, which it does not read",
        altered("lmq", cursors_in_the_other_file),
        "conforms", "hazard", "startup/config-file-without-content-has-a-backup",
        "`lmq`, altered; booted 5.5.0, which begins without cursors",
        remark="messages are handed out, and halves asked about, again",
    ),
    PublicReport(
        "rocketmq 9249 · rocketmq 3212 · rocketmq 4226 · rocketmq 1869",
        "Delayed messages never come: the cursor of their level has passed them, after a delivery that failed or a "
        "wrong `delayOffset.json`",
        "Six messages of level 4 behind its cursor, and in no topic",
        as_recorded("reports/delayed_never_delivered_5.5.0"),
        "departs", "violation", "stage/passed-message-has-left-its-stage",
        "`reports/delayed_never_delivered_5.5.0`, booted 5.5.0: its cursor was set forward between two lives",
    ),
    PublicReport(
        "rocketmq 3473",
        "After a restart delayed messages are delivered a second time",
        "34 deliveries that came twice after a kill",
        as_recorded("odd/delayed_lives_5.5.0"),
        "conforms", "anomaly", "leave_again", "`odd/delayed_lives_5.5.0`, booted 5.5.0, 5.3.3 and 4.9.7",
    ),
    PublicReport(
        "rocketmq 8753 · rocketmq 3706",
        "The least number of a queue is not corrected when all its log files are gone",
        "Entries that point below the log's first file",
        as_recorded("midlife"),
        "conforms", "nothing", "", "`midlife`, booted 5.5.0",
        remark="legal on disk: the least number is in the broker's memory",
    ),
)  # fmt: skip
STARTS = (
    PublicReport(
        "rocketmq 6904 · rocketmq 3257",
        "A broker does not start: a file of another length lies among those of the log or of a queue",
        "`.nfs000000001`, of 100 bytes, in the folder of a queue",
        as_recorded("reports/stray_file_in_queue"),
        "conforms", "hazard", "startup/mapped-file-has-its-full-length",
        "`reports/stray_file_in_queue`: a broker's, the file planted; booted 5.5.0 and 5.3.3, which do not start",
    ),
    PublicReport(
        "rocketmq 1498 · rocketmq 3401 · rocketmq 6096 · rocketmq 9328 · rocketmq 9705",
        "After a power loss a broker does not start: files in `config/` are full of NULs",
        "`topics.json` and its `.bak` are 100 NULs",
        as_recorded("reports/topics_nul"),
        "conforms", "hazard", "startup/config-file-or-its-backup-can-be-read",
        "`reports/topics_nul`: a broker's, both files replaced; booted 5.5.0, 5.3.3 and 4.9.7, which do not start",
        remark="so it is with each file that [a start reads](next-start.md)",
    ),
)  # fmt: skip
STAGES = {
    "Starts": STARTS,
    "The log": LOG,
    "Consume queues": QUEUES,
    "Light queues": LIGHTS,
    "Cursors and delayed messages": CURSORS,
}
