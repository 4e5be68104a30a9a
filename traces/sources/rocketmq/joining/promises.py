"""What clients were promised, held against the whole log: which answers no record keeps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gapless.spec.catalog import SPECS, rule
from gapless.traces.judging.building import STEPS
from gapless.traces.options import Options
from gapless.traces.replay.exact import Event, named, replay
from gapless.traces.sources.rocketmq.clients import evidence
from gapless.traces.sources.rocketmq.clients.evidence import LINE, NUMBER, POSITION, DoubtedMessage, Evidence
from gapless.traces.sources.rocketmq.joining.judged import JudgedStore
from gapless.traces.sources.rocketmq.segments.tasks import Segment, Subject, name_of
from gapless.traces.sources.rocketmq.store.bytes import Ints
from gapless.traces.sources.rocketmq.store.names import HALVES
from gapless.traces.sources.rocketmq.store.wanted import wants

ENOUGH = 10  # answers of which one at least lies where it said, if the client log is this store's
OF_CLIENTS = (  # rules of transactions that only a client log exercises
    rule("transaction/producer-asked-to-commit-it").id,
    rule("transaction/producer-asked-to-roll-it-back").id,
    rule("transaction/commit-that-was-acknowledged-has-its-final").id,
    rule("transaction/check-names-a-version-of-its-half").id,
    rule("transaction/half-was-put-back-before-its-producer-is-asked").id,
)


class Promises:
    """The promises of a store as far as its segments have been joined."""

    def __init__(self, judged: JudgedStore, options: Options) -> None:
        self.judged = judged
        self.options = options
        self.said: Evidence | None = judged.evidence
        self.doubts: list[DoubtedMessage] = []
        self.looked_up = np.zeros(self.said.sends.shape[1] if self.said else 0, np.bool_)
        self.lost = np.zeros_like(self.looked_up)
        self.beyond = 0  # answers that name a place beyond the log's end

    def take(self, segment: Segment) -> None:
        """Join one segment."""
        promised = segment.promised
        if promised is None:
            return
        self.looked_up[promised.low : promised.high] = True
        self.lost[promised.lost] = True
        self.judged.cover("queue", {name: count for name, count in promised.covered.items() if count})
        for broken, count in promised.more.items():
            self.judged.leave_untold(broken, count)
        self.doubts += promised.doubts

    def finish(self) -> None:
        """All segments are in: tell of the promises that were not kept."""
        if self.said is None:
            return
        if self._is_of_another_store():
            return
        for doubt in self.doubts:
            self._tell(doubt.subject, [doubt.message, doubt.event], doubt.line)
        position = self.said.sends[POSITION]
        for at in np.flatnonzero((self.lost | ~self.looked_up) & (position >= self.judged.store.start)).tolist():
            self._lost(self.said.sends[:, at], self.said.topics)
        if self.beyond and not self.judged.store.live and not self.judged.store.goes_on:
            self.judged.inconclusive.append(
                f"{self.beyond:,} acknowledged messages lie beyond the log's end at {self.judged.end:,}, and the "
                "broker did not stop in order: they are lost, or this is a copy of a running broker, older than its "
                "client log"
            )
        expired = int((position < self.judged.store.start).sum())
        self.judged.client = self.said.summary.model_copy(update={"expired": expired})

    def _is_of_another_store(self) -> bool:
        """Whether not one answer of the client log fits the log: then it accuses nobody."""
        assert self.said is not None  # noqa: S101 - asked only where there is a client log
        judged = self.judged
        answers = int((self.said.sends[POSITION] >= judged.store.start).sum())
        if answers < ENOUGH or judged.covered.get("queue.acknowledge") or self.options.trace or self.options.topic:
            return False
        judged.inconclusive.append(
            f"not one of {answers:,} acknowledged messages of the client log is in this log: is it this store's?"
        )
        judged.breaches = [found for found in judged.breaches if found.rule not in OF_CLIENTS]
        judged.client = self.said.summary
        return True

    def _lost(self, send: Ints, topics: tuple[str, ...]) -> None:
        """A message was acknowledged, and no record lies where the answer said."""
        elsewhere = not self.judged.store.clean or bool(self.judged.store.goes_on)
        if elsewhere and send[POSITION] >= self.judged.end:
            self.beyond += 1
            return
        topic, queue = topics[int(send[evidence.TOPIC])], int(send[evidence.QUEUE])
        subject = HALVES if send[evidence.IS_HALF] else (topic, queue)
        if wants(self.options, *subject):
            answer = STEPS["queue"].acknowledge(number=send[NUMBER], position=send[POSITION], same=0)
            self._tell(subject, [answer], int(send[LINE]))

    def _tell(self, subject: Subject, events: list[Event], line: int) -> None:
        """Exact replay of one message and what is said of it."""
        number = named("queue", events[0])["number"]
        begin = replace(SPECS["queue"].initial, start=self.judged.store.start, first=number, indexed=number, end=number)
        outcome = replay("queue", begin, events, profile=self.options.profile, ignored=self.options.ignored)
        departure = outcome.departure
        if departure is not None:
            about = departure.event if departure.event[0] == "acknowledge" else events[0]
            where = f"line {line} of the client log" if line else ""
            self.judged.tell(name_of(subject), named("queue", about)["position"], departure, where)
