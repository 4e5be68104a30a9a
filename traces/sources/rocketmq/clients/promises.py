"""The promises to clients, compared with the whole log: the answers without a record."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from gapless.spec.catalog import SPECS, rule
from gapless.traces.judging.building import STEPS
from gapless.traces.options import Options
from gapless.traces.replay.exact import Event, named, replay
from gapless.traces.sources.rocketmq.blame import transactions as situations
from gapless.traces.sources.rocketmq.blame.situation import switch
from gapless.traces.sources.rocketmq.clients.compared_deliveries import Deliveries
from gapless.traces.sources.rocketmq.clients.evidence import ClientEvidence, PromiseResult, PromiseTally
from gapless.traces.sources.rocketmq.clients.requests.request_rows import AnsweredSends
from gapless.traces.sources.rocketmq.columns.bytes import Ints
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.segments.results import Segment, Subject, name_of
from gapless.traces.sources.rocketmq.store.names import HALVES, TABLE_HALVES, is_of_clients
from gapless.traces.sources.rocketmq.store.selection import includes_queue

ENOUGH = 10  # if the client log is this store's, at least one of so many answers names a record
OF_CLIENTS = (  # rules of transactions that only a client log exercises
    rule("transaction/producer-asked-to-commit-it").id,
    rule("transaction/producer-asked-to-roll-it-back").id,
    rule("transaction/commit-that-was-acknowledged-has-its-final").id,
    rule("transaction/check-names-a-version-of-its-half").id,
    rule("transaction/half-was-put-back-before-its-producer-is-asked").id,
)

FORGOTTEN = (  # rules that a record breaks which ended with its broker
    rule("queue/message-that-was-acknowledged-is-in-the-log-where-the-answer-said").id,
    rule("queue/message-that-was-acknowledged-is-what-its-producer-sent").id,
    *OF_CLIENTS[2:],
)
UNASKED = (  # rules that accuse if no client made the request
    rule("queue/client-sent-the-message").id,
    rule("transaction/producer-asked-to-commit-it").id,
    rule("transaction/producer-asked-to-roll-it-back").id,
)


@dataclass(frozen=True)
class PromiseCheckpoint:
    """The state of promises in the part of the log whose trace messages were read before.

    `delivered`, `readable`: messages that consumers received, without those still in the evidence · `seen`, `half`: of
    those in the evidence, as in `Deliveries`.
    """

    tally: PromiseTally
    delivered: int
    readable: int
    seen: npt.NDArray[np.bool_]
    half: Ints


class Promises:
    """Judges the promises to clients, segment by segment."""

    def __init__(self, judged: StoreFindings, options: Options) -> None:
        self.judged = judged
        self.options = options
        self.evidence: ClientEvidence | None = judged.evidence
        self.tally = PromiseTally()
        self.looked_up = np.zeros(len(self.evidence.sends) if self.evidence else 0, np.bool_)
        self.lost = np.zeros_like(self.looked_up)
        self.beyond = 0  # answers that name a place beyond the log's end
        self.deliveries = Deliveries(judged, options)

    def restore(self, known: PromiseCheckpoint) -> None:
        """Restores the saved state."""
        self._add(known.tally)
        self.deliveries.restore(known.delivered, known.readable, known.seen, known.half)

    def add(self, segment: Segment) -> None:
        """Adds one segment."""
        self.deliveries.add(segment)
        promised = segment.promised
        if promised is None:
            return
        self.looked_up[promised.low : promised.high] = True
        self.lost[promised.lost] = True
        self._add(promised)

    def _add(self, result: PromiseResult | PromiseTally) -> None:
        self.tally.add(result)
        self.judged.cover("queue", {name: count for name, count in result.covered.items() if count})
        for broken, count in result.more.items():
            if count:
                self.judged.count_only(broken, count)
                self.judged.unnamed += count

    def finish(self) -> None:
        """Reports broken promises after the last segment."""
        if self.evidence is None:
            return
        foreign = self._is_of_another_store()
        if not foreign:
            self._older_than_the_store()
        for doubt in self.tally.doubts:
            if not foreign or doubt.witness >= 0:
                self._report(doubt.subject, [doubt.message, doubt.event], doubt.line, doubt.witness)
        sends, start = self.evidence.sends, self.judged.store.start
        broken = self.lost | ~self.looked_up
        if broken.any():
            accuses = (sends.position >= start) & (not foreign or sends.witness >= 0)
            self._lost(sends.some(broken & accuses), self.evidence.topics)
        self._forgive()
        self.judged.blame(situations.NO_MESSAGE, count=self.beyond, end=self.judged.end)
        if self.evidence.summary:
            expired = int(((sends.position < start) & (sends.line > 0)).sum())
            self.judged.client = self.evidence.summary.model_copy(update={"expired": expired})
        if self.evidence.testimony:
            counts = self.deliveries.finish() | {"testified": self.tally.testified, "written": self._written()}
            self.judged.testimony = self.evidence.testimony.model_copy(update=counts)

    def _written(self) -> int:
        """Counts the messages that clients wrote: those consumers see, without commits, and halves as sent.

        A delayed message counts where it is delivered, for one that is.
        """
        traces = self.evidence.testimony.topics.split(", ") if self.evidence and self.evidence.testimony else ()
        seen = sum(
            run.messages
            for (topic, _), run in self.judged.queues.items()
            if is_of_clients(topic) and topic not in traces
        )
        numbers = self.judged.transactions.numbers
        halves = numbers.get("halves", 0) - numbers.get("renewals", 0)
        return seen - numbers.get("finals", 0) + halves

    def _is_of_another_store(self) -> bool:
        """True if no answer of the client log fits the log: then it accuses no broker."""
        assert self.evidence is not None  # noqa: S101 - asked only where there is a client log
        judged = self.judged
        sends = self.evidence.sends
        answers = int(((sends.position >= judged.store.start) & (sends.line > 0)).sum())
        if answers < ENOUGH or self.tally.kept or self.options.trace or self.options.topic:
            return False
        judged.blame(situations.FOREIGN, count=answers)
        judged.breaches = [found for found in judged.breaches if found.rule not in OF_CLIENTS]
        return True

    def _older_than_the_store(self) -> None:
        """Drops missing senders behind the client log's last position, if it may be older than the store.

        It shows in messages behind the last position in the client log, which no client sent.
        """
        assert self.evidence is not None  # noqa: S101 - as above
        answered = self.evidence.sends.position[self.evidence.sends.line > 0]
        reach = max(answered.max(initial=-1), self.evidence.decisions.reach)
        unsent = [doubt for doubt in self.tally.doubts if doubt.event[0] == "account"]
        later = [doubt for doubt in unsent if named("queue", doubt.message)["position"] > reach]
        if not later or self.judged.judges(situations.NO_SENDER, reach=reach):
            return
        self.tally.doubts = [doubt for doubt in self.tally.doubts if doubt not in unsent]
        self.judged.breaches = [found for found in self.judged.breaches if found.rule not in UNASKED]

    def _forgive(self) -> None:
        """Drops broken promises that a kill explains: the broker's own memory may be lost then."""
        judged, forgets = self.judged, switch(on=self.judged.store.forgets)
        if judged.accuses(situations.POOL, forgets):
            return
        lost = [found for found in judged.breaches if found.rule in FORGOTTEN]
        count = len(lost) + sum(judged.unreported.pop(broken, 0) for broken in FORGOTTEN)
        if count:
            judged.breaches = [found for found in judged.breaches if found not in lost]
            where = lost[0].detail or "the client log"
            judged.blame(situations.POOL, forgets, count=count, trace=lost[0].trace, where=where)

    def _lost(self, sends: AnsweredSends, topics: tuple[str, ...]) -> None:
        """Reports acknowledged messages without a record at the answered position."""
        halves = HALVES if HALVES in self.judged.queues or TABLE_HALVES not in self.judged.queues else TABLE_HALVES
        columns = (sends.line, sends.witness, sends.position, sends.number, sends.topic, sends.queue, sends.half)
        for line, witness, position, number, topic, queue, half in zip(*(c.tolist() for c in columns), strict=True):
            if not line and witness >= self.judged.end:
                continue  # the trace message itself is not in the log that is judged
            if position >= self.judged.end and not self.judged.accuses(situations.NO_MESSAGE):
                self.beyond += 1
                continue
            subject = halves if half else (topics[topic], queue)
            if includes_queue(self.options, *subject):
                answer = STEPS["queue"].acknowledge(number=number, position=position, same=0)
                self._report(subject, [answer], line, witness)

    def _report(self, subject: Subject, events: list[Event], line: int, witness: int) -> None:
        """Replays one message exactly, with the reports about it."""
        number = named("queue", events[0])["number"]
        begin = replace(SPECS["queue"].initial, start=self.judged.store.start, first=number, indexed=number, end=number)
        outcome = replay("queue", begin, events, profile=self.options.profile, ignored=self.options.ignored)
        departure = outcome.departure
        if departure is not None:
            about = departure.event if departure.event[0] == "acknowledge" else events[0]
            where = f"line {line} of the client log" if line else f"the trace message at {witness}"
            self.judged.report(name_of(subject), named("queue", about)["position"], departure, where)
