"""Situations of transactions, and of the promises to clients."""

from __future__ import annotations

from gapless.traces.sources.rocketmq.blame.situation import SAY_SO, accuse, doubt, note, pass_by, situation

YOUNGER = "the client log is younger than the copy"
LOST_OR_LATER = (
    ", and the broker did not stop in order: those records are lost, or this is a copy of a running broker that is "
    f"older than its client log ({SAY_SO})"
)

NO_FINAL = situation(
    "transaction/acknowledged-commit-without-a-final", "rocketmq-traces.md#one-sided",
    "{count:acknowledged commit has no final|acknowledged commits have no final}",
    accuse("stopped"), note(YOUNGER, "copied"), doubt(LOST_OR_LATER, "killed or running"),
)  # fmt: skip
ASKED_BEYOND = situation(
    "transaction/back-check-names-a-half-beyond-the-log", "rocketmq-transactions.md#back-check",
    "{count:back-check names a half|back-checks name halves} beyond the log's end at {end:,}",
    accuse("stopped", "within"), note(YOUNGER, "copied, beyond"), doubt(LOST_OR_LATER, "killed or running, beyond"),
)  # fmt: skip
DELAYED_HALF = situation(
    "transaction/half-was-delayed", "rocketmq-transactions.md#delayed-half",
    "{count:transaction with a half, or with the number of one,|transactions with halves, or with numbers of such,} "
    "sent with a delay cannot be judged",
    doubt("the broker kept what it was to decide among delayed messages, where no promise holds "
          "(docs/rocketmq-transactions.md#delayed-half)"),
)  # fmt: skip
PASSED_HALVES = situation(
    "transaction/cursor-passed-an-undecided-half", "rocketmq-transactions.md#cursors",
    "{count:,} undecided halves lie below the half cursor, {cursor}",
    accuse("stopped", "on"),
    doubt("legal in a copy of a running broker, whose cursors were copied after its log; otherwise these transactions "
          "are forgotten"),
    on="the check service has looked at a later half", off="it may not have",
)  # fmt: skip
CURSOR_BEYOND = situation(
    "transaction/cursor-is-beyond-its-queue", "rocketmq-transactions.md#cursors",
    "the {name} cursor in {file} is {cursor}, and those of the log end at {end}",
    accuse("stopped"), doubt("either the log lost its end, or the cursors were copied after it", "killed"),
    pass_by("copied or running"),
)  # fmt: skip
ECHOES = situation(
    "transaction/lacks-what-may-lie-in-damage", "rocketmq.md#invariants",
    "{count:,} transactions and cursors do not fit what is left of the log",
    accuse("off"), note("what they lack may lie in its damage, and they are not judged", "on"),
    on="the log is damaged", off="it is not",
)  # fmt: skip

UNREADABLE = situation("client/log-cannot-be-read", "operator.md#traces", "{why}", doubt(""))
NO_MESSAGE = situation(
    "client/acknowledged-message-beyond-the-log", "rocketmq.md#power-loss",
    "{count:acknowledged message lies|acknowledged messages lie} beyond the log's end at {end:,}",
    accuse("stopped"), note(YOUNGER, "copied"), doubt(LOST_OR_LATER, "killed"), pass_by("running"),
)  # fmt: skip
FOREIGN = situation(
    "client/log-is-of-another-store", "rocketmq-traces.md#one-sided",
    "not one of {count:,} acknowledged messages of the client log is in this log", doubt("is it this store's log?"),
)  # fmt: skip
NO_SENDER = situation(
    "client/last-messages-have-no-sender", "rocketmq-traces.md#one-sided",
    "no client sent the messages behind {reach:,}, the last position in the client log",
    accuse("stopped"),
    doubt(", and the broker did not stop in order: the client log is older than the store, or the messages have no "
          f"sender; senders and requests are not judged ({SAY_SO})"),
)  # fmt: skip
POOL = situation(
    "client/answers-may-have-been-in-a-pool", "rocketmq.md#pool",
    "{count:answer is|answers are} not kept, the first to {trace} ({where})",
    accuse("off"),
    doubt("legal if a broker with transientStorePoolEnable is killed, whose records are in its memory first; else a "
          "loss", "on"),
    on="its memory may be lost", off="it has no such memory, or stopped in order in its first life",
)  # fmt: skip
HANDED_A_HALF = situation(
    "client/was-handed-what-is-a-half-here", "rocketmq-traces.md#deliveries",
    "consumers were handed {count:message|} of which this log has a half and nothing that a consumer can read, such as "
    "that at {position:,}",
    accuse("on"),
    doubt("another broker committed them, or consumers saw what was not committed; --only-broker says that there is no "
          "other broker", "off"),
    on="there is no other broker (--only-broker)", off="that is not known",
)  # fmt: skip
