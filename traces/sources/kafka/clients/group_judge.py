"""Judges the offsets that answers call committed, by `group_offsets`: each counted once, at some time.

Answers have no time, so the question is put behind the record with that offset: at the commit itself, or behind the
marker of its transaction. Source: docs/kafka-clients.md#groups.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gapless.spec.catalog import SPECS
from gapless.traces.judging.building import Events, Ints
from gapless.traces.options import Options
from gapless.traces.problems import shown
from gapless.traces.replay.exact import named
from gapless.traces.sources.kafka.clients.client_log import AnswerLog
from gapless.traces.sources.kafka.clients.losses import permitted_loss
from gapless.traces.sources.kafka.clients.view_judge import FOREIGN, ends_early
from gapless.traces.sources.kafka.files.names import OFFSETS_TOPIC
from gapless.traces.sources.kafka.joining.findings import LogFindings, PlacedDeparture
from gapless.traces.sources.kafka.log.tables import Flags, different
from gapless.traces.sources.kafka.transactions.copies import PartitionPlace
from gapless.traces.sources.kafka.transactions.judge import place_of
from gapless.traces.sources.kafka.transactions.offset_events import LAST
from gapless.traces.sources.kafka.transactions.offset_judge import dense_events
from gapless.traces.sources.kafka.transactions.traces import DepartingTrace, JudgedGroups, departing

SPEC = SPECS["group_offsets"]
COMMIT, WAIT, MARK, TOMBSTONE, RECEIVE = (
    SPEC.codes[name] for name in ("commit", "commit_in_transaction", "mark", "tombstone", "receive")
)
NONE = -1


class AskedOffsets(NamedTuple):
    """Offsets that answers name, each once, by trace. `row`: the event behind which each is asked for, or -1."""

    trace: Ints
    offset: Ints
    row: Ints


@dataclass
class GroupJudge:
    """Judges the answers about the groups of all partitions of `__consumer_offsets`.

    `last`: the last line with an answer that fits the logs.
    """

    log: AnswerLog
    found: LogFindings
    options: Options
    last: int
    compared: int = 0
    departed: list[PlacedDeparture] = field(default_factory=list)

    def judge(self, group: JudgedGroups, copies: Sequence[PartitionPlace], departed: Collection[str]) -> None:
        """Judge the answers about one partition's groups, but those that depart already. Raises OSError."""
        asked = self._asked(group, departed)
        if not len(asked.trace):
            return
        if group.start > 0:
            self.found.note(
                f"answers about offsets of groups in {group.partition} are not compared: older records may be gone"
            )
            return
        self.compared += len(asked.trace)
        events, starts, at, traces = _with_answers(group, asked)
        for one in departing(events, starts, self.found, self.options, dense_events(events, starts)):
            self._report(group, copies, int(traces[one.number]), int(at[one.event]), one)

    def finish(self, *, is_ours: bool) -> None:
        """Report what departs, if some answer fits the logs. `is_ours`: another answer did."""
        if self.departed and not is_ours and not self.found.covered["group_offsets.receive"]:
            self.found.doubt(f"no offset of a group in {shown(self.log.path.name)} counted in these logs: {FOREIGN}")
            return
        for one in self.departed:
            self.found.report(one)

    def _asked(self, group: JudgedGroups, departed: Collection[str]) -> AskedOffsets:
        """The offsets that answers name, with the places at which each is asked for."""
        groups, numbers = self.log.groups, {name: number for number, name in enumerate(group.names)}
        of = np.array([numbers.get(f"{OFFSETS_TOPIC}/{name}", NONE) for name in groups.names], np.int64)
        out = np.array([NONE, *(numbers[name] for name in departed if name in numbers)], np.int64)
        trace = of[groups.name] if len(of) else np.zeros(0, np.int64)
        pairs = np.stack([trace, groups.offset])[:, ~np.isin(trace, out)]
        trace, offset = np.unique(pairs, axis=1)
        return AskedOffsets(trace, offset, asked_behind(group, trace, offset))

    def _report(
        self, group: JudgedGroups, copies: Sequence[PartitionPlace], trace: int, at: int, one: DepartingTrace
    ) -> None:
        name, groups = group.names[trace], self.log.groups
        offset = named(SPEC.name, one.departure.event)["offset"]
        of = [f"{OFFSETS_TOPIC}/{other}" for other in groups.names].index(name)
        first = int(np.flatnonzero((groups.name == of) & (groups.offset == offset))[0])
        by = "its commit" if not groups.is_fetched[first] else "the answer"
        line = (
            f"line {int(groups.line[first]):,} of {shown(self.log.path.name)}: offset {offset:,} of "
            f"{shown(groups.names[of])} is committed, by {by}"
        )
        reason = permitted_loss(copies, by_all=True)
        if not reason and int(groups.line[first]) > self.last:
            reason = ends_early(self.log, int(groups.line[first]))
        if reason:
            self.found.doubt(f"{line}, and never counted by {group.partition}: {reason}")
            return
        self.departed.append(
            PlacedDeparture(name, str(group.partition), at, place_of(group.parts, at), one.departure,
                            batch=(f"{line[0].upper()}{line[1:]}.",), client=str(self.log.path))
        )  # fmt: skip


def asked_behind(group: JudgedGroups, trace: Ints, offset: Ints) -> Ints:
    """The event behind which each offset is asked for; -1 where it is not known if it counted.

    A commit in no transaction counts at once. One in a transaction counts with its marker, unless another record came
    between. Else it is asked for where it was aborted, or at the end of the trace.
    """
    events, starts = group.made.events, group.made.starts
    of = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    (rows,) = np.nonzero(np.isin(of, trace) & np.isin(events.action, (COMMIT, WAIT)))
    _, key = different(np.append(trace, of[rows]), np.append(offset, events.column("offset")[rows]))
    asked, key = key[: len(trace)], key[len(trace) :]
    is_plain = events.action[rows] == COMMIT
    mark = _marks(events, of, rows)
    commits = (mark != NONE) & (events.column("commit")[mark] == 1) & ~is_plain
    records = np.cumsum(np.isin(events.action, (COMMIT, WAIT, TOMBSTONE)))
    clean = commits & (records[mark] == records[rows])
    places = np.full(int(key.max(initial=NONE)) + len(trace) + 1, NONE)
    places[asked] = starts[trace + 1] - 1
    for chosen, value in (
        (~is_plain & (mark != NONE), mark), (~is_plain & (mark == NONE), np.full(len(rows), NONE)),
        (commits, np.full(len(rows), NONE)), (clean, mark), (is_plain, rows),
    ):  # fmt: skip
        places[key[chosen]] = value[chosen]
    return places[asked]


def _marks(events: Events, of: Ints, rows: Ints) -> Ints:
    """The next marker of the same producer in the same trace behind each row; -1 if there is none."""
    (marks,) = np.nonzero(events.action == MARK)
    every = np.append(rows, marks)
    _, owner = different(of[every], events.column("pid")[every])
    order = np.lexsort((every, owner))
    is_mark: Flags = order >= len(rows)
    behind = np.where(is_mark, np.arange(len(order)), len(order))
    following = np.minimum.accumulate(behind[::-1])[::-1] if len(order) else behind
    found = np.full(len(every), NONE)
    known = following < len(order)
    next_mark = order[following[known]]
    same = owner[next_mark] == owner[order[known]]
    found[order[known]] = np.where(same, every[next_mark], NONE)
    return found[: len(rows)]


def _with_answers(group: JudgedGroups, asked: AskedOffsets) -> tuple[Events, Ints, Ints, Ints]:
    """The events of the traces that are asked for, with the answers between; starts, positions, and the traces."""
    made, (traces,) = group.made, np.nonzero(np.isin(np.arange(len(group.names)), asked.trace))
    of = np.repeat(np.arange(len(made.starts) - 1), np.diff(made.starts))
    (rows,) = np.nonzero(np.isin(of, traces))
    (known,) = np.nonzero(asked.row != NONE)
    answers = Events(SPEC, np.full(len(known), RECEIVE, np.int8), np.zeros((len(SPEC.arguments), len(known)), np.int64))
    answers.column("offset")[:] = asked.offset[known]
    behind = np.append(rows, asked.row[known])
    order = np.argsort(behind, kind="stable")
    action = np.append(made.events.action[rows], answers.action)[order]
    args = np.concatenate([made.events.args[:, rows], answers.args], axis=1)[:, order]
    owner = of[behind[order]]
    starts = np.append(owner.searchsorted(traces), len(owner))
    at = np.minimum(made.at[behind[order]], made.at[made.at < LAST].max())
    return Events(SPEC, action, args), starts, at, traces
