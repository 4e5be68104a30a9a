"""Cursors of consumer groups and of delay levels, compared with the ends of the judged queues.

Clients decide about a group's cursor, and brokers accept any: a cursor beyond the end is no departure of the broker,
but a hazard, because the group will skip messages to come. The cursor of delayed messages is the broker's own. A slave
has the cursors of its master, which may be ahead of its log.

Source: docs/rocketmq.md#config, #replicas.
"""

from __future__ import annotations

from collections.abc import Iterator

from gapless.spec.catalog import SPECS
from gapless.traces.judging.building import STEPS
from gapless.traces.problems import Unreadable, shown
from gapless.traces.replay.exact import replay
from gapless.traces.report.wording import plural
from gapless.traces.sources.rocketmq.blame.situation import Decision, switch
from gapless.traces.sources.rocketmq.joining.findings import Breach, StoreFindings
from gapless.traces.sources.rocketmq.layouts.cursors.blame import GROUP_BEYOND, LEVEL_BEYOND
from gapless.traces.sources.rocketmq.layouts.layout import JoinSide, LayoutJudge
from gapless.traces.sources.rocketmq.segments.results import Subject, name_of
from gapless.traces.sources.rocketmq.store.files import FARTHEST
from gapless.traces.sources.rocketmq.store.group_cursors import (
    GroupCursor,
    group_cursors,
    has_own_cursors,
    queues_of_topics,
)
from gapless.traces.sources.rocketmq.store.names import REVIVE, is_made_by_broker
from gapless.traces.sources.rocketmq.store.selection import includes_queue

CURSOR = STEPS["cursor"]
NAMED = 5  # queues that one note names


class GroupCursorJudge(LayoutJudge):
    """Judges the cursors of one store."""

    def settle(self) -> None:
        """Judges every cursor in a queue after the ends of all queues are known."""
        if self.store.live or self.store.limit != FARTHEST:
            return
        try:
            for cursor in group_cursors(self.store, self.judged.notes):
                if includes_queue(self.options, cursor.topic, cursor.queue):
                    self._judge(cursor)
        except Unreadable as problem:
            self.judged.unread_file = str(problem)
        if self.options.topic is None and self.options.trace is None:
            self._topics()

    def _topics(self) -> None:
        """Notes queues without consumers: of unknown topics, or behind the last queue of their topic."""
        known = queues_of_topics(self.store)
        beyond: list[Subject] = []
        unknown: list[Subject] = []
        for (topic, queue), run in self.judged.queues.items() if known is not None else ():
            if known is None or (topic in known and not queue >= known[topic] > 0):
                continue
            if (
                run.indexed > run.first
                and self.store.queues.get((topic, queue))
                and not is_made_by_broker(topic, self.store.settings)
            ):
                (beyond if topic in known else unknown).append((topic, queue))
        fails = "every pull fails (code 17) until it is created again; it was deleted, or the file is an older one"
        for some, why in (
            (unknown, f"of a topic that config/ does not know: {fails}"),
            (beyond, "behind the last one of its topic: no client is sent there any more"),
        ):
            if some:
                listed = ", ".join(shown(name_of(subject)) for subject in sorted(some)[:NAMED]) + ", …" * (
                    len(some) > NAMED
                )
                count = plural(len(some), "queue with messages lies", "queues with messages lie")
                self.judged.note(f"{count} {why} ({listed})")

    def _judge(self, cursor: GroupCursor) -> None:
        """Judges one cursor; a queue without a message in the log has no known end."""
        run = self.judged.queues.get((cursor.topic, cursor.queue))
        if run is None or run.departs:
            return
        step = CURSOR.save if cursor.group else CURSOR.deliver
        events = [CURSOR.open(end=run.end), step(to=cursor.to)]
        initial = SPECS["cursor"].initial
        outcome = replay("cursor", initial, events, profile=self.options.profile, ignored=self.options.ignored)
        self.judged.cover("cursor", outcome.covered)
        situation, own = GROUP_BEYOND if cursor.group else LEVEL_BEYOND, switch(on=has_own_cursors(self.store))
        if outcome.departure is None or self.judged.accuses(situation, own):
            self.judged.joint(self.judged.end, "cursor", cursor.name, events)
        if outcome.departure is None:
            return
        detail = f"{cursor.file}+{cursor.at}"
        values = {"name": cursor.name, "to": cursor.to, "end": run.end, "file": cursor.file}
        decision = self.judged.blame(situation, own, **values)
        if decision is Decision.HAZARD:
            self.judged.feared.append(Breach(cursor.name, run.last, outcome.departure, detail))
        elif decision is Decision.VIOLATION:
            self.judged.report(cursor.name, run.last, outcome.departure, detail)


def not_exercised(judged: StoreFindings) -> Iterator[str]:
    """Yields what is not judged of consumers: their cursors if there are none, and retries of pop."""
    if not judged.covered.get("cursor.save") and not judged.covered.get("cursor.deliver"):
        yield "cursor: no cursor of a consumer group or a delay level in a queue with messages"
    if any(topic.startswith(REVIVE) for topic, _ in judged.queues):
        yield (
            "pop: whether a message that a consumer was handed and did not acknowledge came into its retry topic: a "
            "broker passes by before it is there, and may drop it (docs/rocketmq.md#pop)"
        )


LAYOUT = JoinSide(GroupCursorJudge, not_exercised=not_exercised)
