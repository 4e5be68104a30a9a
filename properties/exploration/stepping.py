"""Steps by hand: a person chooses each step of a run, sees what it changes, and goes back.

gapless explore lease.py --interactive
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gapless.properties.exploration.bounds import Bound, arguments
from gapless.properties.exploration.graph import Call, called, differing
from gapless.properties.exploration.walks import Walker
from gapless.spec.catalog import Spec, State
from gapless.spec.language import Refused
from gapless.traces.replay.notation import changes, changes_text, values_text

SHOWN = 40  # possible steps
HELP = "a number takes that step · b: back · r: what is refused, and why · q: quit"

Ask = Callable[[], str]
Show = Callable[[str], None]


@dataclass
class SteppedRun:
    """A run by hand: the calls so far, and the states that they led to."""

    spec: Spec
    bound: Bound
    calls: list[Call] = field(default_factory=list)
    states: list[State] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin at the initial state."""
        self.walker = Walker(self.spec, self.bound)
        self.every = [Call(name, args) for name in self.spec.actions for args in arguments(self.bound, self.spec, name)]
        self.states.append(self.walker.starts[0])

    def possible(self) -> list[tuple[Call, State]]:
        """The steps that are possible now, and where each leads."""
        found = []
        for call in self.every:
            try:
                found.append((call, self.spec.actions[call.action](self.states[-1], *call.args)))
            except Refused:
                continue
        return found

    def refused(self) -> list[str]:
        """The steps that are refused now, each with the first rule that refuses it."""
        found: dict[str, str] = {}
        for call in self.every:
            try:
                self.spec.actions[call.action](self.states[-1], *call.args)
            except Refused as refusal:
                found.setdefault(f"{call.action}: {refusal.because or refusal.rule}", called(self.spec, call))
        return [f"  {text}   {why.partition(': ')[2]}" for why, text in found.items()]

    def take(self, call: Call, after: State) -> None:
        """Take a step."""
        self.calls.append(call)
        self.states.append(after)

    def back(self) -> None:
        """Take the last step back, if there is one."""
        if self.calls:
            self.calls.pop()
            self.states.pop()

    def shown(self, possible: list[tuple[Call, State]]) -> list[str]:
        """The state, a property that is broken here, and the possible steps by number."""
        now = self.states[-1]
        lines = [
            "",
            f"after {len(self.calls)}: {values_text(differing(self.spec.initial, now)) or 'as in the beginning'}",
        ]
        if (found := self.walker.broken(self.states)) is not None:
            lines.append(f"BROKEN: {found[0].__name__}")
        if not self.bound.within(now):
            lines.append("beyond the bound")
        width = max((len(called(self.spec, call)) for call, _ in possible[:SHOWN]), default=0)
        lines += [
            f"  {number:>2}. {called(self.spec, call):<{width}}   {changes_text(changes(now, after))}"
            for number, (call, after) in enumerate(possible[:SHOWN], 1)
        ]
        if len(possible) > SHOWN:
            lines.append(f"      and {len(possible) - SHOWN} more; any of their numbers may be given, too")
        return lines or ["  no step is possible"]


def step_by_hand(spec: Spec, bound: Bound, ask: Ask, show: Show) -> SteppedRun:
    """Ask for a step until the input ends or says so. Raises NoBound."""
    session = SteppedRun(spec, bound)
    show(HELP)
    if len(session.walker.starts) > 1:
        show(f"in the first of {len(session.walker.starts):,} initial states")
    while True:
        possible = session.possible()
        for line in session.shown(possible):
            show(line)
        try:
            word = ask().strip()
        except EOFError:
            return session
        match word:
            case "q":
                return session
            case "b":
                session.back()
            case "r":
                for line in session.refused():
                    show(line)
            case _ if word.isdecimal() and 0 < int(word) <= len(possible):
                session.take(*possible[int(word) - 1])
            case _:
                show(HELP)
