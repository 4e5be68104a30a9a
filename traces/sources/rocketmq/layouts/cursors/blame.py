"""Situations of cursors of consumer groups and of delay levels."""

from __future__ import annotations

from gapless.traces.sources.rocketmq.blame.situation import LOST_END, accuse, doubt, fear, note, situation

FOUND = "{name} is {to:,}, and the queue ends at {end:,} ({file})"
OF_A_SLAVE = note("legal on a slave; elsewhere messages to come are passed over", "off")
OWN = {"on": "the broker is a master, and always was, by its settings", "off": "that is not known"}

GROUP_BEYOND = situation(
    "cursors/group-is-beyond-its-queue", "rocketmq.md#group-cursors", FOUND, fear("on"), OF_A_SLAVE, **OWN,
)  # fmt: skip
LEVEL_BEYOND = situation(
    "cursors/delay-level-is-beyond-its-queue", "rocketmq.md#group-cursors", FOUND,
    accuse("stopped, on"), OF_A_SLAVE, doubt(LOST_END, "killed or copied or running, on"), **OWN,
)  # fmt: skip
