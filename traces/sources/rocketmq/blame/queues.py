"""Situations of queues: entries and files that are missing, or more than expected."""

from __future__ import annotations

from gapless.traces.sources.rocketmq.blame.situation import SAY_SO, accuse, doubt, fear, note, pass_by, situation

WAITING = "{count:message|} of {queue} {count:?waits for its entry|wait for their entries}"
COPIED_BEFORE = note("the queue was copied before {count:?it|them}", "copied")

PASSED_BY = situation(
    "queue/message-before-the-checkpoint-has-no-entry", "rocketmq.md#recovery-unclean",
    "messages that the checkpoint takes for dispatched have no entry",
    accuse("stopped"),
    accuse("killed or running", unless=f"unless this is a copy whose checkpoint is younger than its queues: {SAY_SO}"),
    note("the checkpoint was copied after {count:queue|} ({names}): a broker that is started on this copy takes all "
         "before it for dispatched, and never writes their entries", "copied", alone=True),
)  # fmt: skip
WAITS = situation(
    "queue/message-waits-for-its-entry", "rocketmq.md#cq2", WAITING,
    COPIED_BEFORE, pass_by("stopped or killed or running"),
)  # fmt: skip
WAITS_BEFORE_OTHERS = situation(
    "queue/message-waits-and-later-ones-have-entries", "rocketmq.md#power-loss", WAITING, COPIED_BEFORE,
    doubt(", though later messages of other queues have theirs: legal after a power loss, for each queue is flushed on "
          f"its own, and in a copy of a running broker ({SAY_SO}); damage otherwise"),
)  # fmt: skip
WAITS_FOR_DATABASE = situation(
    "queue/message-waits-for-its-entry-in-a-database", "rocketmq.md#rocksdb-queues", WAITING, COPIED_BEFORE,
    doubt(", which the broker writes at its next start, though it stopped in order and should have done so then",
          "stopped"),
    pass_by("killed or running"),
)  # fmt: skip
MISSING_BEFORE_OTHERS = situation(
    "queue/entry-is-missing-that-a-start-writes-again", "rocketmq.md#power-loss",
    "entries are missing before others ({names})",
    accuse("stopped"),
    doubt("legal in a store that was killed, for the next start writes them again, if workers build queues in any "
          "order or the power was lost; damage otherwise; open the store, close it, and check it again"),
)  # fmt: skip
MISSING_BEFORE_FILES = situation(
    "queue/entry-is-missing-before-the-first-file", "rocketmq.md#expiry",
    "entries are missing before the first file of their queue ({names})",
    accuse("stopped or killed or running"),
    doubt("legal in a copy whose queues were copied after their oldest files expired, and its log before that; damage "
          "otherwise", "copied"),
)  # fmt: skip
LENGTH_CHANGED = situation(
    "queue/only-file-has-another-length", "rocketmq.md#settings-at-run-time",
    "the only file of a queue is of another length than those of other queues ({names})",
    doubt("legal where mappedFileSizeConsumeQueue was changed while the broker ran, which wrote its broker.conf itself "
          "(docs/rocketmq.md#settings-at-run-time); a file that was cut otherwise"),
)  # fmt: skip
NUMBER_BEFORE_DELETION = situation(
    "queue/number-is-out-of-order-before-a-deletion", "rocketmq.md#deleted-under-traffic",
    "the message of {queue} at {position:,} has number {number:,} where {expected:,} comes next; its topic was "
    "created again behind it, at {recreated:,}",
    doubt("brokers may count so where a topic is deleted under traffic (docs/rocketmq.md#deleted-topics)"),
)  # fmt: skip
READ_OTHERWISE = situation(
    "queue/differs-when-it-is-read-again", "operator.md#copies",
    "{queue} was not the same when it was read again",
    doubt("something is writing; check a copy"),
)  # fmt: skip
DEAD_LETTER = situation(
    "queue/dead-letter-names-a-light-queue", "rocketmq.md#multi-dispatch",
    "{queue} is not judged from {position:,} on",
    doubt("a dead letter names it, which from 5.5.0 on keeps its numbers and is in no light queue; in older versions "
          "it is in one"),
)  # fmt: skip
FILES_GONE = situation(
    "queue/files-are-gone-that-none-can-delete", "rocketmq.md#deleted-topics",
    "{queue} has messages in the log and no file, and no operator can delete its topic",
    doubt("its files were removed by hand, or are lost"),
)  # fmt: skip
LEFT_OVER = situation(
    "queue/slot-behind-the-end-is-no-entry", "rocketmq.md#old-slots",
    "the slot behind the last entry is written, and is none of a message",
    fear(),
)  # fmt: skip
REPEATED_BEHIND = situation(
    "queue/slot-behind-the-end-repeats-the-last", "rocketmq.md#old-slots",
    "the slot behind the last entry repeats it",
    accuse("stopped"), fear("killed or copied or running"),
)  # fmt: skip
NO_FOLDER = situation(
    "queue/topic-is-saved-and-has-no-folder", "rocketmq.md#deleted-topics",
    "{topic} is in {place}, has {messages:message|} in the log and no queue folder",
    doubt("it was deleted and created again and got no message since, or its queues are lost"),
)  # fmt: skip
NO_FILE = situation(
    "queue/topic-is-saved-and-a-queue-has-no-file", "rocketmq.md#deleted-topics",
    "{topic} is in {place}, and has {messages:message|} in the log of {count:?a queue|queues} without a file ({names})",
    doubt("the topic was deleted and created again and {count:?the queue|these queues} got no message since, or "
          "{count:?it is|they are} lost"),
)  # fmt: skip
MORE_WITHOUT_FILES = situation(
    "queue/more-topics-are-saved-and-have-no-files", "rocketmq.md#deleted-topics", "so {count:?is|are} {names}",
    doubt(""),
)  # fmt: skip
DELETED = situation(
    "queue/no-file-of-a-topic-that-is-not-saved", "rocketmq.md#deleted-topics",
    "{count:queue has|queues have} messages in the log and no file",
    note("{count:?its topic was|their topics were} deleted, and perhaps created again, or {count:?its|their} files are "
         "lost ({names})"),
)  # fmt: skip
NO_MESSAGES = situation(
    "queue/entries-without-a-message", "rocketmq.md#old-slots",
    "{queue} has entries that point into the log, and no message in it",
    doubt("entries of another queue, or old bytes"),
)  # fmt: skip
DISPATCHED_BEYOND = situation(
    "queue/database-is-dispatched-beyond-the-log", "rocketmq.md#rocksdb-queues",
    "the queue database was dispatched up to {dispatched:,}, beyond the log's end {end:,}",
    note("the broker corrects it at its next start", "killed or copied"),
    pass_by("running", "stopped, on"),
    doubt(", and no queue has an entry there: either the log lost its last records with their entries, or the database "
          "is damaged", "stopped, off"),
    on="a queue has an entry there", off="none has",
)  # fmt: skip
TWIN_LACKS = situation(
    "queue/second-copy-lacks-entries", "rocketmq.md#written-twice",
    "the database in {folder}/ lacks entries between others ({names}), which the files have",
    doubt("legal if the broker was set to write files alone for a time, damage otherwise"),
)  # fmt: skip
NOT_DELIVERED = situation(
    "queue/message-whose-time-is-over-is-in-no-topic", "rocketmq.md#timers",
    "the time of a message is over, and it is in no topic",
    accuse("durable", "stopped, on"), pass_by(),
    on="the broker is a master by its settings", off="it is a slave, or that is not known",
)  # fmt: skip
