"""The story of a transaction that departs: its own steps, and the loads and unloads of its coordinator."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from gapless.spec.catalog import State, waiving
from gapless.spec.language import Refused
from gapless.traces.judging.columns import Traces
from gapless.traces.judging.followed_traces import FollowedTrace, followed
from gapless.traces.judging.tallies import RuleStep, Suspect, Tally
from gapless.traces.options import Options
from gapless.traces.replay.exact import Departure, StoryStep, changes_of, named
from gapless.traces.replay.kernels import Ints
from gapless.traces.replay.notation import changes
from gapless.traces.replay.possible_states import TraceEvent

STEPS = 12  # of one transaction, that a story tells of
TURNING = ("unload", "recover")  # steps of the coordinator that a story of one transaction tells of too
SEEN = ("log", "table")  # how far a transaction is: a picture shows it at every step


def extend_stories(traces: Traces, tally: Tally, options: Options) -> None:
    """Extend the story of a transaction to its whole life, with the loads of its coordinator meanwhile.

    Each trace is replayed once for all its stories: exact replay takes as long as to judge it.
    """
    lives: dict[str, list[TransactionLife]] = {}
    for signature, cluster in tally.clusters.items():
        first = cluster.first[0]
        if first.departure is not None:
            life = TransactionLife(signature, first, first.departure)
            lives.setdefault(first.at.trace, []).append(life)
    names = traces.names.to_pylist() if lives else []
    for name, some in lives.items():
        trace = names.index(name)
        found = followed(traces, trace, options)
        if found is None:
            _tell_all(traces, trace, some, options)
        else:
            _tell(found, some)
        rows = traces.row[traces.events(*traces.starts[trace : trace + 2].tolist())]
        for life in some:
            cluster = tally.clusters[life.signature]
            extended = replace(life.suspect, departure=life.extended(rows))
            tally.clusters[life.signature] = replace(cluster, first=(extended, *cluster.first[1:]))


def _tell_all(traces: Traces, trace: int, some: Sequence[TransactionLife], options: Options) -> None:
    """Add the steps of these lives, by exact replay of all before the last."""
    last = max(life.suspect.at.row for life in some)
    for taken, before, after, claimed in _path(traces, trace, last, options):
        about = named(traces.spec, taken.event).get("number")
        for life in some:
            if life.tells_of(taken, about):
                life.add(taken, before, after, claimed=claimed)


def _tell(found: FollowedTrace, some: Sequence[TransactionLife]) -> None:
    """Add the steps of these lives: the plain functions take them alone."""
    of: dict[int, list[TransactionLife]] = {}
    for life in some:
        for place in _places(found, life):
            of.setdefault(place, []).append(life)
    for place, before, after, taken in found.steps(sorted(of)):
        for life in of[place]:
            life.add_at_once(taken, before, after, claimed=found.is_claimed(place))


def _places(found: FollowedTrace, life: TransactionLife) -> list[int]:
    """The places of a transaction's last steps, and of the last load and unload behind its first one."""
    spec, batch, end = found.spec, found.one.batch, life.departure.number - 1
    if life.subject is None:
        return []
    action, taken = batch.action[:end], np.ones(end, np.bool_)
    taken[found.one.refused[found.one.refused < end]] = False
    about = [code for name, code in spec.codes.items() if "number" in spec.parameters[name]]
    number = batch.args[spec.arguments.index("number"), :end]
    own = np.flatnonzero(taken & (number == life.subject) & np.isin(action, about))
    turns = (np.flatnonzero(taken & (action == spec.codes.get(name, -1))) for name in TURNING)
    last = [turn[-1] for turn in turns if len(own) and len(turn) and turn[-1] > own[0]]
    return [int(place) for place in (*own[-STEPS:], *last)]


class TransactionLife:
    """The steps of one transaction up to a departure, and the loads and unloads of its coordinator."""

    def __init__(self, signature: tuple[RuleStep, int], suspect: Suspect, departure: Departure) -> None:
        self.signature, self.suspect, self.departure = signature, suspect, departure
        self.subject = named(departure.spec, departure.event).get("number")
        self._steps: deque[StoryStep] = deque(maxlen=STEPS)
        self._turns: dict[str, Callable[[], StoryStep]] = {}  # the last of each, made at the end

    def tells_of(self, taken: TraceEvent, about: int | None) -> bool:
        """True if a step that was taken is one of these. `about`: the transaction that it is about."""
        if self.subject is None or taken.row >= self.suspect.at.row:
            return False
        return about == self.subject or (bool(self._steps) and taken.event[0] in TURNING)

    def add(self, taken: TraceEvent, before: State, after: State, *, claimed: bool) -> None:
        """Add a step."""
        if taken.event[0] in TURNING:
            self._turns[taken.event[0]] = partial(self._step, taken, before, after)
        else:
            self._steps.append(self._step(taken, before, after, claimed=claimed))

    def add_at_once(self, taken: TraceEvent, before: State, after: State, *, claimed: bool) -> None:
        """Add a step whose states do not last."""
        self.add(taken, before, after, claimed=claimed)
        if taken.event[0] in TURNING:
            step = self._turns[taken.event[0]]()
            self._turns[taken.event[0]] = lambda: step

    def _step(self, taken: TraceEvent, before: State, after: State, *, claimed: bool = False) -> StoryStep:
        seen = [(name, self.subject) for name in SEEN if name in self.departure.of.maps]
        made, changed = changes_of(seen, before, after), changes(before, after)
        return StoryStep(taken.row + 1, taken.event, changed, taken.outcome, claimed, made)

    def extended(self, rows: Ints) -> Departure:
        """Return the same departure with these steps, numbered as in the file. `rows`: of all events of the trace."""
        needed = [replace(step, number=int(rows[step.number - 1]) + 1) for step in self.departure.steps]
        turns = (made() for made in self._turns.values())
        by_number = {step.number: step for step in (*needed, *turns, *self._steps)}
        chosen = [by_number[number] for number in sorted(by_number)]
        return replace(
            self.departure,
            number=self.suspect.at.row + 1,
            steps=tuple(chosen),
            left_out=self.departure.number - 1 - len(chosen),
        )


def _path(traces: Traces, trace: int, row: int, options: Options) -> Iterator[tuple[TraceEvent, State, State, bool]]:
    """Yield the events before `row` that were taken.

    Each with the states before and after, and True if it was taken over.
    """
    spec, state = traces.spec, traces.spec.initial
    for taken in traces.taken(trace):
        if taken.row >= row:
            return
        if taken.outcome == "refused":
            continue
        claimed = False
        try:
            with waiving(spec.name, options.ignored):
                after, _ = spec.step(state, taken.event[0], named(spec.name, taken.event), options.profile)
        except Refused as refusal:
            after = spec.taken_over(state, taken.event[0], named(spec.name, taken.event), refusal.rule)
            if after is None or taken.outcome == "unknown":  # it was not taken
                continue
            claimed = True
        yield taken, state, after, claimed
        state = after
