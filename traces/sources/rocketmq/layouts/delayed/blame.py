"""Situations of delayed messages."""

from __future__ import annotations

from gapless.traces.sources.rocketmq.blame.situation import accuse, doubt, note, pass_by, situation

NEITHER = (
    "legal if the end of the log was lost with the power or a pool, or is older than the cursor, as in a copy or on a "
    "slave; damage otherwise"
)

PASSED = situation(
    "delayed/cursor-passed-a-message-in-no-topic", "rocketmq.md#delayed-lost",
    "the cursor of a level has passed a message that is in no topic",
    accuse("stopped, on, first life", "durable, first life"),
    accuse("stopped, on, later life", "durable, later life",
           unless="a power loss in an earlier life may have taken it"),
    pass_by(),
    on="the cursor is the broker's own", off="it may be that of a master",
)  # fmt: skip
NOT_SURE = situation(
    "delayed/message-behind-a-cursor-is-in-no-topic", "rocketmq.md#delayed-lost",
    "{count:delayed message is|delayed messages are} behind the cursor of a level and in no topic, the first is "
    "{first}",
    note(NEITHER, "copied", "on"), doubt(NEITHER),
    on="the broker may be a slave, by its settings", off="it is a master, or that is not known",
)  # fmt: skip
