"""Findings with their stories, made of the tallies of recorded traces, and the reasons of what was not judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from gapless.spec.catalog import END, AnySpec, Spec, resolve_spec
from gapless.spec.reading.quantification import parameters
from gapless.spec.reading.trees.decision_trees import names_its_ends, state_of_terms
from gapless.traces.judging.findings import lateness
from gapless.traces.judging.findings.pictures import Axis, swimlane_of
from gapless.traces.judging.findings.timelines import timeline_of
from gapless.traces.judging.tallies import Amount, Cluster, First, Tally
from gapless.traces.options import Options
from gapless.traces.problems import Unreadable, pasted, shown
from gapless.traces.replay import event_rules
from gapless.traces.replay.exact import Departure, in_words, story
from gapless.traces.replay.kernels import kernel
from gapless.traces.replay.notation import breach, values_text
from gapless.traces.replay.possible_states import STATES
from gapless.traces.report.parts import Parts
from gapless.traces.report.sections import presentation
from gapless.traces.report.values import Finding, OverdueRow, Where
from gapless.traces.suggestions import did_you_mean, first_of

VALUES = 4  # at hand, of one message: a story has all


@dataclass(frozen=True)
class EventOrigin:
    """The place in which events were recorded.

    `path`: what a user names · `file`: where in it an event is found · `place`: the kind and the number of a place in
    that file, such as line 7, by the row of an event · `steps`: the same, for the numbers of a story's steps ·
    `kind`: of the source that the events are of, if it is known · `names`: gives names of traces that it has.
    """

    path: Path
    bytes: int
    records: int
    file: str
    place: Callable[[int], tuple[str, int]]
    profile: str  # by which it is judged unless the user names another
    steps: Callable[[int], str] | None = None
    kind: str = ""
    names: Callable[[], Iterable[str]] = tuple


class Teller:
    """Tells of one source what was found out."""

    def __init__(self, recorded: EventOrigin, options: Options, only: str | None) -> None:
        self.recorded = recorded
        self.path = recorded.path
        self.options = options
        self.specs = options.every_spec
        self.only = only

    def parts(self, tallies: dict[str, Tally], *, interrupted: bool = False) -> Parts:
        """The numbers, the findings, and what was not judged. Raises Unreadable."""
        self._check_order(tallies)
        parts = Parts(bytes=self.recorded.bytes, records=self.recorded.records)
        for spec, tally in tallies.items():
            parts.events[spec] = tally.events
            parts.traces += tally.traces
            parts.coverage |= {f"{spec}.{action}": count for action, count in tally.covered.items()}
            parts.event_rules |= {f"{spec}/{name}" for name in tally.checked}
            parts.not_exercised += self._not_exercised(self.specs[spec], tally)
            clusters = sorted(tally.clusters.values(), key=lambda cluster: cluster.first[0].at)
            parts.findings += [self._finding(spec, cluster) for cluster in clusters]
        for spec, tally in sorted(tallies.items()):
            for name, (count, first) in sorted(tally.anomalies.items()):
                if count:
                    parts.anomalies[name] = count
                    parts.findings.append(self._anomaly(spec, name, count, first))
            if spec == lateness.SPEC and (amounts := tally.amounts.get("overdue")):
                self._overdue(parts, amounts.values())
        parts.notes += self._otherwise_judged(tallies)
        parts.reasons = list(self._unjudged(tallies))
        if not parts.reasons and not interrupted:
            parts.reasons += self._nothing(parts)
        return parts

    def _check_order(self, tallies: dict[str, Tally]) -> None:
        falls = min((tally.falls for tally in tallies.values() if tally.falls), default=None)
        if falls:
            raise Unreadable(
                f"{shown(self.path)}, {self._place(falls)}: position {falls.position} of {shown(falls.trace)} is lower "
                "than the one before: expected the events of a trace in the order in which they took effect; sort them "
                "by position"
            )

    def _place(self, first: First) -> str:
        kind, number = self.recorded.place(first.row)
        return f"{kind} {number}"

    def _not_exercised(self, spec: Spec, tally: Tally) -> Iterator[str]:
        file = shown(self.recorded.file)
        for action in spec.actions:
            if tally.traces and action not in tally.covered and (action != END or action in tally.recorded):
                yield f"{spec.name}.{action}: {_never_taken(tally, action, file)}"
        for action in spec.actions:
            if 0 < tally.inferred.get(action, 0) >= tally.covered.get(action, 0):
                yield f"{spec.name}.{action}: every such step in {file} is inferred, none was recorded"
        for action in spec.actions:
            if count := tally.taken_over.get(action, 0):
                yield (
                    f"{spec.name}.{action}: {count:,} such steps in {file} break a rule, and are assumed for what "
                    "follows: later steps are not compared with the state before them"
                )
        if spec.at_rest and tally.rested < tally.traces:
            which = "some traces" if tally.rested else "all traces"
            yield (
                f"{spec.name}.{END}: {which} in {file} lack an end event: not checked if anything is lost or left "
                "undecided in the end"
            )

    def _otherwise_judged(self, tallies: dict[str, Tally]) -> Iterator[str]:
        """Verdicts that are not those of a kernel."""
        for spec, tally in tallies.items():
            if obstacle := kernel(self.specs[spec], self.options.ignored).obstacle:
                yield f"{spec} is judged by the plain functions, not by a kernel: {obstacle}"
            if tally.rested:
                yield from self._rest_by_plain_functions(self.specs[spec])
            if tally.overruled:
                count, first = tally.overruled
                yield (
                    f"a kernel refused {count:,} {spec} events that the plain functions accept, {shown(first.trace)} "
                    f"at {self._place(first)} for one: the plain functions decided; please report this"
                )

    @staticmethod
    def _rest_by_plain_functions(spec: Spec) -> Iterator[str]:
        """The reason why no kernel judges the properties at rest."""
        before = state_of_terms(spec.initial)
        for holds in spec.at_rest:
            if parameters(holds) and not names_its_ends(holds, before):
                name = next(iter(parameters(holds)))
                yield (
                    f"{spec.name}.{END} is judged by the plain functions, not by a kernel: {holds.__name__} does not "
                    f"say between which numbers {name} lies; `implies(0 <= {name} and {name} < …, …)` does"
                )

    def _nothing(self, parts: Parts) -> Iterator[str]:
        """The reason why nothing was checked. Vacuity is not conformance."""
        if not self.recorded.records:
            yield "no event in it: nothing was checked"
        elif not parts.traces:
            yield self._absent()
        elif not parts.coverage and not parts.violations:
            yield "no step in it that was surely taken: nothing was checked"

    def _absent(self) -> str:
        """The sentence for a topic or a trace that is not recorded, with the names of some that are."""
        names = [shown(name) for name in self.recorded.names()]
        topics = sorted({name.rpartition("/")[0] for name in names} - {""})
        known = topics if self.only is None else [*names, *topics]
        asked = str(self.options.topic if self.only is None else self.only)
        what = f"of topic {asked}" if self.only is None else f"called {asked}"
        here = sorted(name for name in names if name.rpartition("/")[0] == asked)
        here = here or (topics if self.only is None and topics else names)
        listed = f"; there: {first_of(here, 8)}" if here else ""
        if self.only == "":  # of `gapless explain`
            return f"name the trace by --trace: nothing was checked{listed}"
        return f"no trace {what} in it{did_you_mean(asked, known)}: nothing was checked{listed}"

    def _unjudged(self, tallies: dict[str, Tally]) -> Iterator[str]:
        """The reason why some traces were not judged."""
        for spec, tally in tallies.items():
            if tally.unopened:
                count, first = tally.unopened
                yield (
                    f"{count} of {tally.asked} {spec} traces do not begin with open, and were not judged; "
                    f"{first.trace} at {self._place(first)} is one: open says which state a trace begins in, mid-life "
                    "or new"
                )
            if tally.unpromised:
                count, first = tally.unpromised
                yield (
                    f"{count} of {tally.traces} {spec} traces tell of an environment that breaks its promise, "
                    f"{first.trace} at {self._place(first)} for one: what the system does then is not judged"
                )
        given_up = [tally.given_up for tally in tallies.values() if tally.given_up]
        if given_up:
            first = min(first for _, first in given_up)
            yield (
                f"{sum(count for count, _ in given_up)} of {sum(tally.traces for tally in tallies.values())} traces "
                f"have so many steps of unknown outcome that more than {STATES} states are possible, {first.trace} "
                f"after {self._place(first)} for one: the rest was not judged"
            )

    def _finding(self, spec: str, cluster: Cluster) -> Finding:
        first = cluster.first[0]
        departure = first.departure
        assert departure is not None  # noqa: S101 - for the type checker: the first of a cluster is explained
        trace, (kind, number) = shown(first.at.trace), self.recorded.place(first.at.row)
        file = shown(self.recorded.file)
        shows = presentation(self.recorded.kind)
        subject, plain = shows.subjects.get(spec, spec), in_plain_words(departure, shows.sentences)
        lines = story(
            departure,
            title=f"{subject} {trace} departs at {file}, {kind} {number}.",
            also=first.also,
            where=self.recorded.steps,
            again=f"gapless explain {pasted(self.path)} --trace {pasted(first.at.trace)}" + self._asked(),
        )
        return Finding(
            rule=departure.rule, severity="violation", spec=spec, trace=trace,
            source=shown(self.path),
            position=first.at.position, where=Where(file=file, offset=number),
            message=f"{trace}, {kind} {number}: {_message(departure, plain)}",
            summary=plain or f"{trace}, {kind} {number}: {_broken(departure)}",
            needs=departure.because, otherwise=departure.otherwise, here=departure.here, story=lines,
            count=cluster.count,
            traces=list(dict.fromkeys(shown(suspect.at.trace) for suspect in cluster.first)),
            picture=first.bitmap or swimlane_of(departure, self._axis()) or timeline_of(departure, first.broken),
        )  # fmt: skip

    def _axis(self) -> Axis:
        """The place of a step in a picture: in the file if that is known, otherwise its number."""
        if self.recorded.steps is None:
            return Axis("event of the trace", lambda step: step.number)
        kind, _ = self.recorded.place(0)
        return Axis(f"{kind} of {shown(self.recorded.file)}", lambda step: self.recorded.place(step.number - 1)[1])

    def _asked(self) -> str:
        """The options that must be given again."""
        asked = "" if self.options.profile == self.recorded.profile else f" --profile {self.options.profile}"
        return asked + "".join(f" --spec {pasted(spec.called)}" for spec in self.options.specs)

    def _anomaly(self, spec: str, name: str, count: int, first: First) -> Finding:
        place = Where(file=shown(self.recorded.file), offset=self.recorded.place(first.row)[1])
        return anomaly(
            self.specs[spec], name, count, source=self.path, trace=first.trace, position=first.position, where=place
        )

    def _overdue(self, parts: Parts, amounts: Iterable[Amount]) -> None:
        """Add the rows of what is overdue, and to its finding the worst of them."""
        tasks = [lateness.LateTask(one.at.trace, one.values) for one in amounts]
        rows = lateness.overdue_rows(shown(self.path), tasks)
        worst = min(amounts, key=lambda one: (-one.amount, one.at)).at
        place = Where(file=shown(self.recorded.file), offset=self.recorded.place(worst.row)[1])
        found = parts.findings.pop().model_copy(update={"position": worst.position, "where": place})
        parts.findings.append(lateness.with_amount(found, rows))
        parts.rows[OverdueRow.part] = rows


def _never_taken(tally: Tally, action: str, file: str) -> str:
    """The reason why no step of an action counts as taken: none is there, or none was surely taken and allowed."""
    if action not in tally.recorded:
        return f"no such step in {file}"
    doubtful = {outcome: tally.doubtful.get((action, outcome), 0) for outcome in ("unknown", "refused")}
    departs = sum(
        cluster.count
        for ((rule, step), _), cluster in tally.clusters.items()
        if step == action and rule.partition("/")[2] not in event_rules.OF_EVENTS
    )
    counts = {**doubtful, "not allowed": departs}
    counts["not judged"] = max(tally.recorded[action] - sum(counts.values()), 0)
    listed = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    return f"never taken for certain in {file}: {listed}"


def _message(departure: Departure, plain: str) -> str:
    """The broken rule and the values at hand, in one sentence without its end."""
    values = plain or values_text(dict(islice(in_words(departure).items(), VALUES)))
    shows_values = values and departure.rule.partition("/")[2] != event_rules.REFUSED
    return f"{_broken(departure)}: {values}" if shows_values else _broken(departure)


def _broken(departure: Departure) -> str:
    """The broken rule in one sentence without its end."""
    action = departure.event[0]
    match departure.rule.partition("/")[2]:
        case event_rules.REFUSED:
            return f"{action} was refused, though the spec allows it"
        case event_rules.SEEN:
            return f"another state was recorded after {action}"
        case _:
            return breach(action, departure.because)


def in_plain_words(departure: Departure, sentences: Mapping[str, str]) -> str:
    """The sentence that a source has for a broken rule, with the values at hand; empty if it has none.

    A sentence names arguments and fields; of a map element, its field: `transaction {number} was {log}`.
    """
    values = {name.partition("[")[0]: value for name, value in in_words(departure).items()}
    try:
        return sentences.get(departure.rule, "").format_map(values)
    except KeyError:  # the rule was refused before it read all that the sentence names
        return ""


def anomaly(
    spec: AnySpec, name: str, count: int, *, source: Path | str, trace: str, position: int, where: Where
) -> Finding:
    """The finding for a deviation, by its `name`, that the profile allows."""
    of = resolve_spec(spec)
    deviation = next(d for d in of.deviations if d.step.__name__ == name)
    sentence = name.replace("_", " ")
    return Finding(
        rule=of.rule_of(deviation.step).id, severity="anomaly", spec=of.name, trace=shown(trace),
        source=shown(source), position=position, where=where, message=f"{sentence} ({deviation.seen})", needs=sentence,
        otherwise="nothing: this is legal, and counted", here={}, story=[], count=count, traces=[shown(trace)],
    )  # fmt: skip
