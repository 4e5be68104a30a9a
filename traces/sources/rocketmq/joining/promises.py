"""What clients were promised, held against the whole log: which answers no record keeps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gapless.spec.catalog import SPECS
from gapless.traces.options import Options
from gapless.traces.replay.exact import Event, replay
from gapless.traces.sources.rocketmq.clients import evidence
from gapless.traces.sources.rocketmq.clients.evidence import LINE, NUMBER, POSITION, STORIES, Evidence, Kept, Suspect
from gapless.traces.sources.rocketmq.found import Judged, name_of
from gapless.traces.sources.rocketmq.splits import Segment
from gapless.traces.sources.rocketmq.store.layout import HALF_TOPIC
from gapless.traces.sources.rocketmq.store.scan import Ints

ENOUGH = 10  # answers of which one at least lies where it said, if the client log is this store's
OF_CLIENTS = (  # needs of transactions that only a client log exercises
    "the producer asked to commit it",
    "the producer asked to roll it back",
    "the commit that was acknowledged has its final",
    "the check names a version of its half",
    "the half was put back before its producer is asked",
)


class Promises:
    """The promises of a store as far as its segments have been joined."""

    def __init__(self, judged: Judged, options: Options) -> None:
        self.judged = judged
        self.options = options
        self.said: Evidence | None = judged.evidence
        self.suspects: list[Suspect] = []
        self.told: dict[str, int] = {}
        self.looked_up = np.zeros(self.said.sends.shape[1] if self.said else 0, np.bool_)
        self.lost = np.zeros_like(self.looked_up)
        self.beyond = 0  # answers that name a place beyond the log's end

    def take(self, segment: Segment) -> None:
        """Join one segment."""
        if segment.kept is not None:
            self._take(segment.kept)

    def _take(self, kept: Kept) -> None:
        self.looked_up[kept.low : kept.high] = True
        self.lost[kept.lost] = True
        self.judged.cover("queue", {name: count for name, count in kept.covered.items() if count})
        for because, count in kept.more.items():
            self.judged.leave_untold("queue", because, count)
        self.suspects += kept.suspects

    def finish(self) -> None:
        """All segments are in: tell of the promises that are not kept."""
        if self.said is None:
            return
        if self._is_of_another_store():
            return
        for suspect in self.suspects:
            self._tell(suspect.subject, [("append", suspect.message), suspect.event], suspect.line)
        position = self.said.sends[POSITION]
        for at in np.flatnonzero((self.lost | ~self.looked_up) & (position >= self.judged.store.start)).tolist():
            self._lost(self.said.sends[:, at], self.said.topics)
        if self.beyond and not self.judged.store.live:
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
        judged.found = [found for found in judged.found if found.because not in OF_CLIENTS]
        judged.client = self.said.summary
        return True

    def _lost(self, send: Ints, topics: tuple[str, ...]) -> None:
        """A message was acknowledged, and no record lies where the answer said."""
        if not self.judged.store.clean and send[POSITION] >= self.judged.end:
            self.beyond += 1
            return
        topic, queue = topics[int(send[evidence.TOPIC])], int(send[evidence.QUEUE])
        subject = (HALF_TOPIC, 0) if send[evidence.IS_HALF] else (topic, queue)
        if self.options.wants(*subject):
            said: Event = ("acknowledge", (int(send[NUMBER]), int(send[POSITION]), 0))
            self._tell(subject, [said], int(send[LINE]))

    def _tell(self, subject: tuple[str, int], events: list[Event], line: int) -> None:
        """Exact replay of one message and what is said of it."""
        number = events[0][1][0]
        begin = replace(SPECS["queue"].initial, start=self.judged.store.start, first=number, indexed=number, end=number)
        outcome = replay("queue", begin, events, profile=self.options.profile, ignored=self.options.ignored)
        departure = outcome.departure
        if departure is None:
            return
        self.told[departure.because] = self.told.get(departure.because, 0) + 1
        if self.told[departure.because] > STORIES:
            self.judged.leave_untold("queue", departure.because)
            return
        action, args = departure.event
        position = args[1] if action == "acknowledge" else events[0][1][2]
        where = f"line {line} of the client log" if line else ""
        self.judged.find(name_of(subject), position, departure, where)
