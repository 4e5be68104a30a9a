"""Situations of compacted topics."""

from __future__ import annotations

from gapless.traces.sources.rocketmq.blame.situation import LOST_END, POWER_LOSS, accuse, doubt, pass_by, situation

UNREAD = situation("compaction/file-cannot-be-read", "rocketmq.md#compaction", "{why}", doubt(""))
BROKEN_OFF = situation(
    "compaction/was-broken-off", "rocketmq.md#compaction-broken-off", "{queue}",
    doubt("its compaction was broken off while it replaced files, and these are not judged "
          "(docs/rocketmq.md#compaction-broken-off)"),
)  # fmt: skip
CREATED_AGAIN = situation(
    "compaction/topic-was-created-again", "rocketmq.md#compaction-anew",
    "{queue} was deleted and created again, by its numbers",
    doubt("its compacted topic keeps the old messages, and new ones are dropped until their numbers are higher "
          "(docs/rocketmq.md#compaction-anew); it is judged alone"),
)  # fmt: skip
LAST_ENTRIES = situation(
    "compaction/last-entries-are-not-their-messages", "rocketmq.md#compaction",
    "the last entries of {queue} among compacted topics are not what their messages are (broken: {because})",
    accuse("stopped", "off"), doubt(POWER_LOSS),
    on="their file was being written", off="it was full",
)  # fmt: skip
NO_ENTRIES = situation(
    "compaction/last-file-has-no-entries", "rocketmq.md#compaction", "the last file of records has no file of entries",
    accuse("stopped"), pass_by("killed or copied or running"),
)  # fmt: skip
OLD_ENTRIES = situation(
    "compaction/entries-of-an-earlier-compaction", "rocketmq.md#compaction-broken-off",
    "{queue}: compacted entries from {number:,} on, behind {before:,}, are left of a compaction that was broken off, "
    "and the broker takes them for its own since its next start (docs/rocketmq.md#compaction-broken-off)",
    accuse("first life"), doubt("; or they are damaged", "later life"),
)  # fmt: skip
POSITION = situation(
    "compaction/position-is-beyond-the-log", "rocketmq.md#compaction-position",
    "{queue} was compacted up to message {position:,}, and the log has none of this number",
    accuse("stopped, first life"), doubt(LOST_END),
)  # fmt: skip
NOT_DISPATCHED = situation(
    "compaction/last-messages-are-missing", "rocketmq.md#compaction-judged",
    "the last messages of a queue are not in its compacted topic",
    accuse("stopped"), pass_by("killed or copied or running"),
)  # fmt: skip
MISSING = situation(
    "compaction/message-is-missing", "rocketmq.md#compaction-judged",
    "message {number:,} of {queue} is missing in its compacted topic",
    accuse("on"),
    doubt("legal if enableCompaction was off when it was sent, compactionMappedFileSize or compactionCqMappedFileSize "
          "another than now, or the topic's cleanup.policy was set later; {otherwise}", "off"),
    on="the broker compacted when it was sent, by those around it", off="that is not known",
)  # fmt: skip
