"""Situations of the timer wheel and its log."""

from __future__ import annotations

from gapless.traces.sources.rocketmq.blame.situation import accuse, doubt, fear, pass_by, situation

NO_UNIT = situation(
    "timer_wheel/message-without-its-unit", "rocketmq.md#timers",
    "{count:message waits|messages wait} for {count:?its|their} time and no unit of the timer log names them",
    accuse("stopped"),
    doubt("legal if the power was lost, for the next start writes them again; damage otherwise"),
)  # fmt: skip
UNIT_BEYOND = situation(
    "timer_wheel/unit-names-a-message-beyond-the-log", "rocketmq.md#timers-beyond",
    "a unit names a message beyond the log's end",
    accuse("stopped, first life"), pass_by(),
)  # fmt: skip
UNIT_TO_COME = situation(
    "timer_wheel/unit-of-a-time-to-come-names-a-message-beyond-the-log", "rocketmq.md#timers-beyond",
    "a unit of a time to come names a message beyond the log's end: the log will have another one there",
    fear("stopped or killed or running"), pass_by("copied"),
)  # fmt: skip
SLOT_AHEAD = situation(
    "timer_wheel/slot-is-ahead-of-the-timer-log", "rocketmq.md#timers",
    "a slot names a unit behind the end of the timer log",
    accuse("stopped, first life"), pass_by(),
)  # fmt: skip
SLOT_COUNT = situation(
    "timer_wheel/slot-counts-other-units", "rocketmq.md#timers-again",
    "a slot counts more units than the timer log has of its time, or fewer",
    accuse("first life, on"), pass_by(),
    on="the timer log is whole, and names no message twice", off="it is not",
)  # fmt: skip
