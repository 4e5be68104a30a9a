"""Situations of files of any kind: they cannot be read, or are not of the moment of the log."""

from __future__ import annotations

from gapless.traces.sources.rocketmq.blame.situation import accuse, doubt, note, situation

LINK = situation(
    "store/link-leads-nowhere", "rocketmq.md#files", "{link}", doubt("", "on"), note("", "off"),
    on="what is judged depends on it", off="that does not",
)  # fmt: skip
OF_DAMAGED_LOG = situation(
    "store/log-is-damaged-below-it", "rocketmq.md#invariants", "{what}",
    accuse("off"), note("{its} log is damaged", "on"), on="the log is damaged", off="it is not",
)  # fmt: skip
OTHER_MOMENT = situation(
    "store/is-of-another-moment-than-the-log", "operator.md#copies", "{what}",
    accuse("stopped or killed", "running, on"), note("{it} of another moment than the log", "copied", "running, off"),
    on="it is compared as far as the log was read", off="it is compared with the log's end",
)  # fmt: skip
OTHER_MOMENTS = situation(
    "store/its-files-are-of-different-moments", "operator.md#copies", "{what}",
    accuse("stopped or killed, off"),
    note("a broker is running on this store; `gapless check` judges it once the broker has stopped", "running", "on"),
    note("its files are of different moments", "copied, off"),
    on="it is watched", off="it is checked",
)  # fmt: skip
IS_WRITTEN = situation(
    "store/a-running-broker-writes-it", "operator.md#watch", "{what}",
    accuse("stopped or killed or copied"), note("a broker is running on this store", "running"),
)  # fmt: skip
UNREADABLE = situation(
    "store/cannot-be-read", "rocketmq.md#files", "{what}", doubt("{why}", "on"), note("{why}", "off"),
    on="the broker uses it, or its settings are not known", off="it does not",
)  # fmt: skip
ODD_ROW = situation(
    "store/table-has-a-row-that-no-broker-writes", "rocketmq.md#index-rocksdb", "{what}",
    doubt("there is {odd}, which no broker writes"),
)  # fmt: skip
DIFFERS = situation(
    "store/copied-message-differs-from-the-log", "rocketmq-tiered.md#upload",
    "messages of {queue}, from number {number} on, differ in {elsewhere} from those in the log",
    accuse("off"),
    doubt("legal if the log lost its end in a power loss after they were written there, or the topic was created "
          "again, with the same numbers; damage otherwise", "on"),
    on="both were sent, at different times, and a number may be given again", off="they are one message",
)  # fmt: skip
