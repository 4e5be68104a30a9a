"""Situations of the hash index."""

from __future__ import annotations

from gapless.traces.sources.rocketmq.blame.situation import SAY_SO, accuse, doubt, note, pass_by, situation

NOT_THERE = "records from {first:,} on are not in the hash index, and others are"
OFF_FOR_A_TIME = "legal if messageIndexEnable was off for a time, damage otherwise"
PROMISED = {"on": "the settings of the whole life have the broker write it", "off": "they may have been others"}

LOST_TAIL = situation(
    "hash_index/last-items-point-at-no-record", "rocketmq.md#index-lost", "the end of {file}, {count:item|},",
    accuse("stopped or killed or running, first life", "copied, first life, off"),
    note(" was copied after the log", "copied, on"),
    doubt(" points at no record that has its key: legal after a power loss, for the log was cut off where they point, "
          f"and in a copy of a running broker ({SAY_SO}); damage otherwise"),
    on="all point beyond the log's end", off="some do not",
)  # fmt: skip
NOT_WHOLE = situation(
    "hash_index/file-is-not-whole", "rocketmq.md#index-lost", "{file} is not whole (broken: {because})",
    accuse("stopped", "off"),
    doubt("legal after a power loss, for the broker deletes the file at its next start, and in a copy of a running "
          f"broker ({SAY_SO}); damage otherwise"),
    on="the checkpoint does not know it to be on disk: a start deletes it", off="the checkpoint does",
)  # fmt: skip
COPIED_MEANWHILE = situation(
    "hash_index/slots-or-header-are-of-another-moment", "rocketmq.md#index-lost", NOT_WHOLE.found,
    note("{file} was copied while the broker wrote it (broken: {because})", "copied, on", alone=True),
    accuse("stopped", "killed or copied or running, off"), doubt(NOT_WHOLE.cells[1].text, "killed or running, on"),
    on=NOT_WHOLE.on, off=NOT_WHOLE.off,
)  # fmt: skip
IS_OFF = situation(
    "hash_index/is-off", "rocketmq.md#index", "{count:record is|records are} not in the hash index",
    note("messageIndexEnable is off"),
)  # fmt: skip
INSIDE_A_FILE = situation(
    "hash_index/record-is-missing-inside-a-file", "rocketmq.md#index-lost", NOT_THERE,
    accuse("stopped, on"), doubt(OFF_FOR_A_TIME), **PROMISED,
)  # fmt: skip
BETWEEN_FILES = situation(
    "hash_index/record-is-missing-between-files", "rocketmq.md#index-lost", NOT_THERE,
    accuse("stopped, first life, on"), pass_by("later life"), doubt(OFF_FOR_A_TIME), **PROMISED,
)  # fmt: skip
BEHIND_ALL_FILES = situation(
    "hash_index/record-is-missing-behind-all-files", "rocketmq.md#index-lost", NOT_THERE,
    accuse("stopped, on"), pass_by("killed or copied or running"), doubt(OFF_FOR_A_TIME), **PROMISED,
)  # fmt: skip
LOST = situation(
    "hash_index/records-are-missing", "rocketmq.md#index-lost", IS_OFF.found,
    note("a broker that was killed, or had messageIndexEnable off for a time, lacks a part of it, and builds none of "
         "it later (docs/rocketmq.md#index)"),
)  # fmt: skip
AT_AN_EDGE = situation(
    "hash_index/key-is-missing-at-the-edge-of-a-file", "rocketmq.md#index-lost",
    "a key has no item, and others of its record are the first or the last of a file",
    accuse("first life"), pass_by("later life"),
)  # fmt: skip
NOT_WRITTEN = situation(
    "hash_index/key-is-missing-at-the-end", "rocketmq.md#index-lost",
    "a key has no item, and others of its record are the last of all, or in a file that a start deletes",
    accuse("stopped"), pass_by("killed or copied or running"),
)  # fmt: skip
