"""Situations of tiered storage and its index."""

from __future__ import annotations

from gapless.traces.sources.rocketmq.blame.situation import accuse, doubt, note, pass_by, situation

LOST_OR_POWER = ": their messages are lost, or the power was"

UNREAD = situation(
    "tiered/cannot-be-judged", "rocketmq-tiered.md#judged", "{what}",
    doubt("{why}", "on"), note("{why}", "off"),
    on="it is damaged", off="it is of another kind",
)  # fmt: skip
UNLISTED = situation(
    "tiered/file-is-not-in-the-metadata", "rocketmq-tiered.md#metadata",
    "tiered storage has {count:file|} that its metadata does not list, the first {first}",
    doubt("the metadata is incomplete, and consumers do not receive those messages"),
)  # fmt: skip
FILE_GONE = situation(
    "tiered/oldest-file-is-gone", "rocketmq-tiered.md#expiry", "the oldest file is gone, and its metadata is there",
    accuse("stopped"), pass_by("killed or copied or running"),
)  # fmt: skip
FILE_EMPTY = situation(
    "tiered/oldest-file-is-empty", "rocketmq-tiered.md#expiry", "the oldest file is empty, as a start makes it again",
    accuse("first life"), pass_by("later life"),
)  # fmt: skip
ALL_GONE = situation(
    "tiered/no-file-has-its-content", "rocketmq-tiered.md#expiry",
    "{queue} in tiered storage: none of its files has the content that its metadata says is committed",
    doubt("they expired all together, or are lost"),
)  # fmt: skip
SOME_GONE = situation(
    "tiered/several-oldest-files-have-no-content", "rocketmq-tiered.md#expiry",
    "{queue} in tiered storage: {count:,} of its oldest files have no content",
    doubt(", and a broker deletes them one by one, each with its metadata" + LOST_OR_POWER),
)  # fmt: skip
OLDEST_GONE = situation(
    "tiered/oldest-file-has-no-content", "rocketmq-tiered.md#expiry",
    "{queue} in tiered storage: its oldest file, {file}, has no content",
    note(", and counts as expired", "on"),
    doubt(", and no record of the log is so young that its messages would have expired" + LOST_OR_POWER, "off"),
    on="its messages were to expire", off="they were not",
)  # fmt: skip
INDEX_NOT_WHOLE = situation(
    "tiered/index-file-is-not-whole", "rocketmq-tiered.md#index",
    "{file}, of the index of tiered storage, is not whole (broken: {because})",
    accuse("first life, on", "stopped, first life"),
    doubt("legal if a broker was killed or the power was lost while the file was written, as it is not flushed; damage "
          "otherwise"),
    on="it was sealed", off="it was being written",
)  # fmt: skip
LEAST_HASH = situation(
    "tiered/index-item-has-the-least-hash", "rocketmq-tiered.md#index", INDEX_NOT_WHOLE.found,
    doubt(INDEX_NOT_WHOLE.cells[1].text),
)  # fmt: skip
LEADS_NOWHERE = situation(
    "tiered/index-item-leads-nowhere", "rocketmq-tiered.md#index",
    "no message of {queue} with their key is where {count:item|} of the index of tiered storage would lead",
    accuse("on"), doubt("legal if that queue was created again since, damage otherwise", "off"),
    on="the queue was never created again, by its files", off="it may have been",
)  # fmt: skip
