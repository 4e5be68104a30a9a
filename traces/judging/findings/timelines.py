"""Timelines for pictures of findings: made of a departure alone, so that every spec has them, users' own included."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gapless.traces.replay.event_rules import REFUSED
from gapless.traces.replay.exact import Departure, StoryStep, call, departed, in_words, named
from gapless.traces.replay.notation import ASKED, BROKER_REFUSED, FOR, SEEN_THERE, SHOWN_AS_NOT_TAKEN, SHOWN_AS_TAKEN
from gapless.traces.report.pictures.timeline import ColumnKind, Timeline, TimelineCell, TimelineColumn, TimelineRow

ROWS = 12  # steps before the last: the latest, for they are nearest to the finding
COLUMNS = 6
CLAIMED = "not allowed either; assumed, so that later steps are judged"


def timeline_of(departure: Departure, broken: int = 0) -> Timeline:
    """The timeline of a departure. `broken`: how many events of its trace broke a rule before."""
    values = in_words(departure)
    wrong, names = _contradicting(departure), _chosen(departure)
    kinds = {name: _kind(departure, name) for name in names}
    steps = departure.steps[-ROWS:]
    history = _ColumnValues([name for name in names if kinds[name] == "state"], steps, values)
    rows = [
        TimelineRow(
            number=step.number, call=call(departure.of, step.event), fate=_fate(step),
            cells=[history.cell(name, step) for name in names],
        )
        for step in steps
    ]  # fmt: skip
    last = TimelineRow(
        number=departure.number,
        call=call(departure.of, departure.event),
        fate=departed(departure),
        cells=[TimelineCell(value=values[name], wrong=name in wrong) for name in names],
    )
    columns = [TimelineColumn(name=_label(name), kind=kinds[name]) for name in names]
    return Timeline(
        columns=columns, rows=[*rows, last], before=len(departure.steps) + departure.left_out, broken=broken
    )


class _ColumnValues:
    """The values of the state at each step, as far as the changes of a story's steps show them."""

    def __init__(self, names: Sequence[str], steps: Sequence[StoryStep], last: dict[str, int | str]) -> None:
        self.known = {name: _before(name, steps, last[name]) for name in names}

    def cell(self, name: str, step: StoryStep) -> TimelineCell:
        """The value of a column at a step. Steps come in their order."""
        if name not in self.known:
            return TimelineCell()
        for what, before, after in _changed(step):
            if what == name:
                self.known[name] = after
                return TimelineCell(value=after, before=before)
        return TimelineCell(value=self.known[name])


def _changed(step: StoryStep) -> Iterable[tuple[str, int | str, int | str]]:
    return (*step.made, *step.changes)


def _before(name: str, steps: Sequence[StoryStep], last: int | str) -> int | str:
    """The value in front of all steps: that before the first change, or the last one if none changes it."""
    return next((before for step in steps for what, before, _ in _changed(step) if what == name), last)


def _fate(step: StoryStep) -> str:
    if step.outcome == "refused":
        return BROKER_REFUSED
    if not step.done:
        return SHOWN_AS_NOT_TAKEN
    return CLAIMED if step.claimed else SHOWN_AS_TAKEN if step.outcome == "unknown" else ""


def _chosen(departure: Departure) -> list[str]:
    """The values that get a column: those at fault first, if there are too many. A call shows its keys itself."""
    here = [name for name in departure.here if not _is_key(departure, name)]
    wrong = _contradicting(departure)
    first = [name for name in here if name in wrong] + [name for name in here if name not in wrong]
    return [name for name in here if name in first[:COLUMNS]]


def _kind(departure: Departure, name: str) -> ColumnKind:
    if name.startswith(FOR):
        return "variable"
    if name.endswith(SEEN_THERE):
        return "recorded"
    field = name.partition("[")[0]
    return "state" if hasattr(departure.of.initial, field) and not name.endswith(ASKED) else "argument"


def _label(name: str) -> str:
    return name.removeprefix(FOR).removesuffix(SEEN_THERE).removesuffix(ASKED)


def _contradicting(departure: Departure) -> set[str]:
    """The values at fault: a counterexample, else those recorded afterwards, else arguments, else the state.

    A counterexample comes in front of the arguments. Of the state, elements of maps come before plain fields, which
    mostly say how far a rule looks. Where a step was refused that is allowed, no value is at fault.
    """
    if departure.rule.partition("/")[2] == REFUSED:
        return set()
    kinds = {name: _kind(departure, name) for name in departure.here}
    if "argument" in kinds.values():
        ahead = list(kinds.values()).index("argument")
        if found := {name for name in list(kinds)[:ahead] if kinds[name] == "state" and "[" in name}:
            return found
    for kind in ("recorded", "argument"):
        found = {name for name in departure.here if kinds[name] == kind and not _is_key(departure, name)}
        if found:
            return found
    state = {name for name in departure.here if kinds[name] == "state"}
    return {name for name in state if "[" in name} or state


def _is_key(departure: Departure, name: str) -> bool:
    """True if an argument only says at which key of a map the rule looks."""
    value = named(departure.of, departure.event).get(name)
    return any(other.endswith(f"[{value}]") for other in departure.here if other != name)
