"""Transactions that depart and are not judged: their evidence ends, or their half was delayed."""

from __future__ import annotations

from collections import Counter
from functools import cached_property

from gapless.spec.catalog import rule
from gapless.traces.replay.exact import Departure, Event, named
from gapless.traces.sources.rocketmq.blame import transactions as situations
from gapless.traces.sources.rocketmq.blame.situation import place
from gapless.traces.sources.rocketmq.clients.decision_index import (
    CLIENT_POSITION,
    CLIENT_WHAT,
    ROLL_BACK,
    DecisionIndex,
)
from gapless.traces.sources.rocketmq.columns.lookup import distinct
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.file_access import record_at
from gapless.traces.sources.rocketmq.store.names import DELAYING, HALF_TOPICS, REAL_TOPIC

UNDECIDED = "not judged"  # what became of such a transaction, where its half went elsewhere
NAMES_NO_HALF = rule("transaction/final-names-a-version-of-its-half").id
UNASKED = rule("transaction/producer-asked-to-roll-it-back").id


def may_lie_beyond(judged: StoreFindings, event: Event) -> bool:
    """True if a producer's report is about a part that the log may have lost beyond its end."""
    if event[0] == "ask_back":
        beyond = named("transaction", event)["half"] >= judged.end
        return not judged.accuses(situations.ASKED_BEYOND, place(beyond=beyond))
    return event[0] == "acknowledge" and not judged.accuses(situations.NO_FINAL)


class DelayedHalves:
    """Halves among delayed messages: their clients asked for a delay.

    The broker diverts such a half, and puts it among the halves later, at another position and with another number. A
    final names it by its first position, and an op by its first number, which some other half may have. No broker
    promises an outcome of its transaction, or of that other one. `client`: the requests, as in `Terms`. Source:
    docs/rocketmq-transactions.md#delayed-half, #n26.
    """

    def __init__(self, store: StoreDirectory, client: DecisionIndex) -> None:
        self.store = store
        self.client = client

    def concern(self, departure: Departure) -> bool:
        """True if a departure may be the effect of a delayed half."""
        step = named("transaction", departure.event)
        if departure.rule == NAMES_NO_HALF:
            return self._number(step["half"]) is not None
        return departure.rule == UNASKED and step["number"] in self._numbers  # it is inferred from an op alone

    @cached_property
    def _numbers(self) -> set[int | None]:
        """The numbers by which ops name the delayed halves with a decision."""
        rows = self.client.rows
        asked = rows[CLIENT_POSITION, rows[CLIENT_WHAT] <= ROLL_BACK]
        return {self._number(position) for position in distinct(asked).tolist()}

    def _number(self, position: int) -> int | None:
        """Returns the number of the delayed half at `position`; None without one."""
        record = record_at(self.store, position)
        if record is None or record.topic not in DELAYING or record.properties.get(REAL_TOPIC) not in HALF_TOPICS:
            return None
        return record.number


def report_inconclusive(judged: StoreFindings, unsure: Counter[str], delayed: int) -> None:
    """Reports undecided transactions. `unsure`: counts of events about possibly lost records, by action."""
    judged.blame(situations.NO_FINAL, count=unsure["acknowledge"])
    judged.blame(situations.ASKED_BEYOND, place(beyond=True), count=unsure["ask_back"], end=judged.end)
    judged.blame(situations.DELAYED_HALF, count=delayed)
