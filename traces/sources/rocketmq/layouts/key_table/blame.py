"""Situations of the table of keys."""

from __future__ import annotations

from gapless.traces.sources.rocketmq.blame.situation import LOST_END, accuse, doubt, note, pass_by, situation

WITHOUT_ROWS = "{count:record is|records are} without rows in the table of keys"
SO_ARE_OTHERS = WITHOUT_ROWS + ", and so are all before them, the first at {first:,}"
OFF_FOR_A_TIME = "legal if messageIndexEnable or indexRocksDBEnable was off for a time, damage otherwise"

BEHIND_THE_END = situation(
    "key_table/record-behind-its-end", "rocketmq.md#index-rocksdb",
    "{count:record is|records are} behind the end of the table of keys, the first at {first:,}",
    doubt("legal for what comes while a broker stops, damage otherwise", "stopped, on"),
    note("the next start puts them into it, if indexRocksDBEnable is on"),
    on="its settings have the broker write the table", off="they do not, or are not known",
)  # fmt: skip
EXPIRED = situation(
    "key_table/rows-are-gone-with-their-hour", "rocketmq.md#index-rocksdb", SO_ARE_OTHERS,
    note("rows go by the hour once the log has lost a file"),
)  # fmt: skip
BEFORE_THE_FIRST = situation(
    "key_table/record-before-the-first-row", "rocketmq.md#index-rocksdb", SO_ARE_OTHERS,
    note("indexRocksDBEnable was off then", "later life"), doubt(OFF_FOR_A_TIME, "first life"),
)  # fmt: skip
NO_ROWS = situation(
    "key_table/record-without-its-rows", "rocketmq.md#index-rocksdb",
    WITHOUT_ROWS + ", and others behind them have theirs, the first at {first:,}",
    accuse("stopped or killed or copied, on"), doubt(OFF_FOR_A_TIME),
    on="the broker wrote the table from the first record on, by its settings", off="that is not known",
)  # fmt: skip
NO_RECORD = situation(
    "key_table/row-without-its-record", "rocketmq.md#index-rocksdb",
    "{count:row of the table of keys is|rows of the table of keys are} for places where no record with their key lies, "
    "the first at {first:,}",
    accuse("first life, within", "stopped, first life"), pass_by("running, beyond"), doubt(LOST_END),
)  # fmt: skip
END_WITHOUT_RECORD = situation(
    "key_table/ends-where-no-record-lies", "rocketmq.md#index-rocksdb",
    "the table of keys ends at {last:,}, where no record with keys lies",
    accuse("stopped or killed or copied, first life, within", "stopped, first life"), pass_by("running"),
    doubt(LOST_END + "; records up to there will be left out of it"),
)  # fmt: skip
