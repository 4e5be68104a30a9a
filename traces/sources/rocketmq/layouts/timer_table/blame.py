"""Situations of the table of timers."""

from __future__ import annotations

from gapless.traces.sources.rocketmq.blame.situation import LOST_END, accuse, doubt, note, pass_by, situation

NO_MESSAGE = situation(
    "timer_table/row-without-its-message", "rocketmq.md#timers-rocksdb",
    "no message waits for {count:row|} of the table of timers, the first for {first:,}",
    accuse("first life, within", "stopped, first life"), pass_by("running, beyond", "running, later life"),
    doubt(LOST_END),
)  # fmt: skip
CANCELLED = situation(
    "timer_table/row-of-a-cancelled-timer", "rocketmq.md#timers-rocksdb",
    "the table has a row of a timer that was cancelled long before its time",
    accuse("stopped or killed or copied, first life"), pass_by(),
)  # fmt: skip
NO_ROW = situation(
    "timer_table/message-without-its-row", "rocketmq.md#timers-rocksdb",
    "{count:message waits|messages wait} for a time to come, and no row of the table of timers names them",
    accuse("first life, on"), doubt("legal if timerRocksDBEnable was off for a time, damage otherwise"),
    on="it was stored long before its time", off="it was stored shortly before it",
)  # fmt: skip
IN_THE_WHEEL = situation(
    "timer_table/message-without-its-row-is-in-the-wheel", "rocketmq.md#timers-rocksdb", NO_ROW.found,
    note("they are in the timer wheel"),
)  # fmt: skip
READ_BEYOND = situation(
    "timer_table/has-read-more-messages-than-there-are", "rocketmq.md#timers-rocksdb",
    "the table of timers has read {number:waiting message|}, and there are {end:,}",
    accuse("stopped, first life"), doubt(LOST_END),
)  # fmt: skip
FAR_BEHIND = situation(
    "timer_table/is-far-behind-the-log", "rocketmq.md#timers-rocksdb",
    "{count:timer that waits|timers that wait} cannot be judged, the first at {first:,}: the table of timers {what}, "
    "more than {seconds} s before the log's end",
    doubt("; legal if timerRocksDBEnable was off then or the broker was behind, damage otherwise", "stopped, on"),
    pass_by(),
    on="its settings have the broker write the table", off="they do not, or are not known",
)  # fmt: skip
