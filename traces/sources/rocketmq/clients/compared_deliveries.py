"""Compares the deliveries to consumers, as traces report them, with the whole log."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gapless.spec.catalog import SPECS
from gapless.traces.judging import building
from gapless.traces.judging.building import STEPS, Events
from gapless.traces.options import Options
from gapless.traces.replay.exact import Event, replay
from gapless.traces.replay.kernels import kernel
from gapless.traces.sources.rocketmq.blame.situation import switch
from gapless.traces.sources.rocketmq.blame.transactions import HANDED_A_HALF
from gapless.traces.sources.rocketmq.clients.trace_topics import key_handed
from gapless.traces.sources.rocketmq.columns.bytes import Ints, key_of
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.segments.results import Segment
from gapless.traces.sources.rocketmq.store import file_access

DELIVERY = STEPS["delivery"]


class Deliveries:
    """The deliveries in trace messages, looked up in all segments so far."""

    def __init__(self, judged: StoreFindings, options: Options) -> None:
        self.judged = judged
        self.options = options
        self.handed = judged.evidence.handed if judged.evidence else np.zeros((2, 0), np.int64)
        self.seen = np.zeros(self.handed.shape[1], np.bool_)
        self.half = np.full(self.handed.shape[1], -1, np.int64)  # where one lies
        self.known = 0, 0  # others, and the number of those found

    def restore(self, delivered: int, readable: int, seen: npt.NDArray[np.bool_], half: Ints) -> None:
        """Restores the result for deliveries that were looked up before, and the rest of them."""
        self.known = delivered, readable
        self.seen, self.half = seen.copy(), half.copy()

    def add(self, segment: Segment) -> None:
        """Adds one segment."""
        if segment.delivered is not None:
            self.seen[segment.delivered.seen] = True
            self.half[segment.delivered.halves] = segment.delivered.places

    def finish(self) -> dict[str, int]:
        """Reports deliveries of missing messages, if that can be decided, and returns counts for the report."""
        reported = self.handed[1] < self.judged.end
        missing = reported & ~self.seen
        halves = np.flatnonzero(missing & (self.half >= 0))
        if self._is_whole():
            alone = switch(on=self.judged.store.only_broker)
            if self.judged.accuses(HANDED_A_HALF, alone):
                self._accept(int((reported & self.seen).sum()))
                for at in np.flatnonzero(missing).tolist():
                    self._report(at)
            elif len(halves) and self.options.trace is None:
                place = int(self.half[halves[0]])
                self.judged.blame(HANDED_A_HALF, alone, count=len(halves), position=place)
        return {
            "delivered": int(reported.sum()) + self.known[0],
            "readable": int((reported & self.seen).sum()) + self.known[1],
            "undecided": len(halves),
        }

    def _is_whole(self) -> bool:
        """True if the log still has all that clients ever wrote."""
        return not self.judged.store.start and not self.judged.damage and self.options.topic is None

    def _accept(self, count: int) -> None:
        """Counts deliveries of messages that are in the log."""
        of = kernel("delivery", self.options.ignored)
        events = Events.room(of.spec, 3 * count)
        events.action[:] = np.tile([of.spec.codes[step] for step in ("open", "append", "hand")], count)
        replayed = of.replay(
            np.arange(0, 3 * count + 1, 3), events.action, events.args, building.states(of.spec, count),
            profile=self.options.profile,
        )  # fmt: skip
        accepted: Ints = replayed.covered
        self.judged.cover("delivery", {step: int(accepted[of.spec.codes[step]]) for step in of.spec.actions})

    def _report(self, at: int) -> None:
        """Replays one message exactly that consumers cannot have received."""
        half, witness = int(self.half[at]), int(self.handed[1, at])
        store = self.judged.store
        name = file_access.name_of_record(store, half) if half >= 0 else key_handed(store, witness, self.handed[0, at])
        if self.options.trace is not None and key_of(self.options.trace) != self.handed[0, at]:
            return
        events: list[Event] = [DELIVERY.open(start=0)]
        if half >= 0:
            events.append(DELIVERY.append(marked=1))
        events.append(DELIVERY.hand())
        begin = SPECS["delivery"].initial
        outcome = replay("delivery", begin, events, profile=self.options.profile, ignored=self.options.ignored)
        if outcome.departure is not None:
            position = half if half >= 0 else witness
            self.judged.report(name, position, outcome.departure, f"the trace message at {witness} says so")
