"""Situations of the table of halves."""

from __future__ import annotations

from gapless.traces.sources.rocketmq.blame.situation import LOST_END, accuse, doubt, note, pass_by, situation

WITHOUT_ROW = "{count:undecided half has|undecided halves have} no row in the table of halves, the first at {first:,}"

OTHER_MOMENT = situation(
    "half_table/is-of-another-moment", "operator.md#copies", "the table of halves in rocksdbstore/",
    accuse("stopped or killed"),
    note(" is not judged: it is of another moment than the log", "copied", "running, off"),
    note(" is judged once the log has been read beyond it", "running, on"),
    on="it is watched", off="it is checked",
)  # fmt: skip
UNREADABLE = situation(
    "half_table/cannot-be-read", "rocketmq-transactions.md#half-table",
    "the table of halves in rocksdbstore/, which lists undecided ones, is not judged",
    doubt("{why}"),
)  # fmt: skip
NO_HALF = situation(
    "half_table/row-without-its-half", "rocketmq-transactions.md#half-table",
    "there is no half for {count:row|} of the table of halves, the first for {first:,}",
    accuse("first life, within", "first life, stopped"), doubt(LOST_END),
)  # fmt: skip
BEHIND_THE_END = situation(
    "half_table/undecided-half-behind-its-end", "rocketmq-transactions.md#half-table",
    "{count:undecided half lies|undecided halves lie} behind the end of the table of halves",
    doubt("legal for what comes while a broker stops, damage otherwise", "stopped"),
    note("the next start adds them", "killed or copied"), pass_by("running"),
)  # fmt: skip
NO_ROW = situation(
    "half_table/undecided-half-without-its-row", "rocketmq-transactions.md#half-table", WITHOUT_ROW,
    accuse("stopped or running, first life"),
    doubt("legal if a power loss took the end of the log with their decisions; otherwise they are forgotten"),
)  # fmt: skip
YOUNG = situation(
    "half_table/young-half-without-its-row", "rocketmq-transactions.md#half-table",
    WITHOUT_ROW + ", and as far as the log tells the broker cannot have asked about {count:?it|them} {checks:time|}",
    doubt("legal if it ran on without a message, one check in {seconds:g} s; otherwise they are forgotten"),
)  # fmt: skip
GIVEN_UP = situation(
    "half_table/half-without-its-row-may-be-given-up", "rocketmq-transactions.md#half-table",
    "{count:undecided half has|undecided halves have} no row in the table of halves",
    note("the broker gives a half up after its last check, and no record says how often it asked"),
)  # fmt: skip
END_WITHOUT_HALF = situation(
    "half_table/ends-where-no-half-lies", "rocketmq-transactions.md#half-table",
    "the table of halves ends at {last:,}, where no half lies",
    accuse("first life, within", "first life, stopped"),
    doubt(LOST_END + "; halves up to there will be left out of it"),
)  # fmt: skip
