"""What is not decided of a transaction that departs from its spec: its evidence ends, or its half went elsewhere."""

from __future__ import annotations

from collections import Counter

from gapless.spec.catalog import rule
from gapless.traces.replay.exact import Departure, Event, named
from gapless.traces.report.wording import plural
from gapless.traces.sources.rocketmq.joining.judged import JudgedStore
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.file_access import record_at
from gapless.traces.sources.rocketmq.store.names import DELAYING, HALF_TOPICS, REAL_TOPIC

UNDECIDED = "not judged"  # what became of such a transaction, where its half went elsewhere
NAMES_NO_HALF = rule("transaction/final-names-a-version-of-its-half").id


def may_lie_beyond(judged: JudgedStore, event: Event) -> bool:
    """Whether a producer tells of what the log may have had beyond its end, had the broker stopped in order."""
    if judged.store.clean:
        return False
    return event[0] == "acknowledge" or (event[0] == "ask_back" and named("transaction", event)["half"] >= judged.end)


def names_a_delayed_half(store: StoreDirectory, departure: Departure) -> bool:
    """Whether a final names a half that waits where delayed messages do: its client asked for a delay.

    The broker diverts it, and puts it among the halves later, at another place and by another number. What becomes of
    such a transaction nobody promises. Source: docs/rocketmq-transactions.md#delayed-half, #n26.
    """
    if departure.rule != NAMES_NO_HALF:
        return False
    record = record_at(store, named("transaction", departure.event)["half"])
    return record is not None and record.topic in DELAYING and record.properties.get(REAL_TOPIC) in HALF_TOPICS


def tell_undecided(judged: JudgedStore, unsure: Counter[str], delayed: int) -> None:
    """Say what was not decided. `unsure`: events that tell of what may have been lost, by action."""
    if told := unsure["acknowledge"]:
        judged.lost_or_later(plural(told, "acknowledged commit has no final", "acknowledged commits have no final"))
    if told := unsure["ask_back"]:
        what = plural(told, "back-check names a half", "back-checks name halves")
        judged.lost_or_later(f"{what} beyond the log's end at {judged.end:,}")
    if delayed:
        what = plural(delayed, "transaction whose half was", "transactions whose halves were")
        judged.doubt(
            f"{what} sent with a delay cannot be judged: the broker kept what it was to decide among delayed messages, "
            "where no promise holds (docs/rocketmq-transactions.md#delayed-half)"
        )
