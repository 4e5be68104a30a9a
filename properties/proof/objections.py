"""Objections of the plain functions to what a claim comes to: why an example speaks against it, in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gapless.properties.proof.claims import HelpfulStep, RankedClaim
from gapless.spec.catalog import Spec, State
from gapless.spec.language import Refused
from gapless.traces.replay.notation import call_of

SUBJECT = "the claim's number"
"""The number that a claim speaks of, among the values of an example."""

Values = Mapping[str, int]
Objects = Callable[[State, Values, State], str]


@dataclass(frozen=True)
class Objection:
    """The objections to a claim of a spec's own file; each is given a state, values, and the state after a step."""

    spec: Spec
    claim: RankedClaim

    def against(self, wrong: str, *about: Any) -> Objects | None:
        """Describe an example of what is `wrong`, as `liveness.py` names it; empty where it is none."""
        found: Callable[..., str] | None = getattr(self, wrong, None)
        if self.claim.number is None or found is None:
            return None

        def describe(before: State, values: Values, after: State) -> str:
            number = values.get(SUBJECT, 0)
            if not self.claim.pending(before, number):
                return ""
            return found(before, number, {name: one for name, one in values.items() if name != SUBJECT}, after, *about)

        return describe

    def nothing_helps(self, before: State, number: int, _args: Values, _after: State) -> str:
        """No helpful step is the one to take, or the rank is below 0."""
        if self._rank(before, number) < 0:
            return f"The rank is {self._rank(before, number)}{self._for(number)}, below 0"
        if any(helpful.when(before, number) for helpful in self.claim.helpful):
            return ""
        return f"No helpful step is the one to take{self._for(number)}"

    def disabled(self, before: State, number: int, args: Values, _after: State, helpful: HelpfulStep) -> str:
        """The helpful step is the one to take, and is refused."""
        if not helpful.when(before, number):
            return ""
        given = {name: args[name] for name in self.spec.parameters[helpful.step]}
        try:
            self.spec.actions[helpful.step](before, *given.values())
        except Refused as refusal:
            call = call_of(helpful.step, given)
            return f"{call} is the one to take{self._for(number)}, and is refused: it needs that {refusal.because}"
        return ""

    def does_not_lower(self, before: State, number: int, _args: Values, after: State, helpful: HelpfulStep) -> str:
        """The helpful step is taken, and the rank is no lower."""
        was, now = self._rank(before, number), self._rank(after, number)
        if not helpful.when(before, number) or not self.claim.pending(after, number) or now < was:
            return ""
        return f"The rank{self._for(number)} was {was}, and is {now}"

    def raises(self, before: State, number: int, _args: Values, after: State, _name: str) -> str:
        """A step raises the rank."""
        was, now = self._rank(before, number), self._rank(after, number)
        return (
            f"The rank{self._for(number)} was {was}, and is {now}"
            if self.claim.pending(after, number) and was < now
            else ""
        )

    def loses(self, _before: State, number: int, _args: Values, after: State, _name: str) -> str:
        """A step ends what is pending, and it is not done."""
        if self.claim.pending(after, number) or self.claim.done(after, number):
            return ""
        return f"It is not pending any more{self._for(number)}, and not done"

    def withdraws(
        self, before: State, number: int, _args: Values, after: State, _name: str, helpful: HelpfulStep
    ) -> str:
        """A step keeps the rank, and afterwards the helpful step is not the one to take, or another one."""
        kept = self.claim.pending(after, number) and self._rank(before, number) <= self._rank(after, number)
        if not kept or not helpful.when(before, number):
            return ""
        was, rank = helpful.args(before, number, 0), f"the rank{self._for(number)} is {self._rank(after, number)} still"
        if not helpful.when(after, number):
            return f"{call_of(helpful.step, was)} was the one to take, and is not any more; {rank}"
        now = helpful.args(after, number, 0)
        return f"{call_of(helpful.step, was)} was to take, and now {call_of(helpful.step, now)}; {rank}" * (was != now)

    def _rank(self, state: State, number: int) -> int:
        return int(self.claim.rank(state, number, 0))

    def _for(self, number: int) -> str:
        return f" for {self.claim.number} = {number}" if self.claim.number else ""
