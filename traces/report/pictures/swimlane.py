"""The life of a transaction as one lane of coloured states, a box for each step that was taken."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from pydantic import Field

from gapless.traces.report.model import Model

# The tone of each state that has one of its own; a class of the page. Others take turns.
TONES = {
    "gone": "gone",
    "not there": "gone",
    "OPEN": "begun",
    "PREPARED": "begun",
    "COMMITTING": "ending",
    "ABORTING": "ending",
    "COMMITTED": "committed",
    "ABORTED": "rolled-back",
    "ROLLED_BACK": "rolled-back",
    "PARKED": "parked",
}
TURNS = ("begun", "ending", "committed", "rolled-back", "parked")


class LaneStep(Model):
    """A step of a life: its lane, its place on the axis, and the state that it leads to."""

    lane: str
    at: int
    call: str = Field(description="the step in the notation of stories")
    becomes: str = Field(description="what it changed, or that it is not allowed")
    departs: bool = False
    state: str = Field(default="", description="the state of the subject after the step; empty where it has none")


class Swimlane(Model):
    """The life of one subject around its finding: its steps in their order, each in the lane of its kind."""

    kind: Literal["swimlane"] = "swimlane"
    axis: str = Field(description="what the places of the axis count")
    lanes: list[str]
    steps: list[LaneStep]
    left_out: int = Field(default=0, description="steps of the same life before the first one here")


@dataclass(frozen=True)
class LaneBox:
    """A step as a box: its number, the step, its place, and the state with the tone of its colour."""

    number: int
    step: LaneStep
    state: str
    tone: str

    @property
    def action(self) -> str:
        """The name of the step, without its arguments."""
        return self.step.call.partition("(")[0]


@dataclass(frozen=True)
class SwimlaneShapes:
    """A life as boxes in a row, which wraps where a page is narrow."""

    picture: Swimlane
    name: str

    @property
    def unit(self) -> str:
        """The unit of the places: a line, a byte, an event."""
        return self.picture.axis.partition(" of ")[0]

    @property
    def boxes(self) -> list[LaneBox]:
        """A box for each step."""
        tones = self._tones()
        first = self.picture.left_out + 1
        return [
            LaneBox(number, step, state, "departs" if step.departs else tones.get(state, "plain"))
            for number, (step, state) in enumerate(self._states(), first)
        ]

    def _states(self) -> list[tuple[LaneStep, str]]:
        return [(step, step.state or ("" if step.departs else step.lane)) for step in self.picture.steps]

    def _tones(self) -> dict[str, str]:
        """A tone for each state."""
        states = dict.fromkeys(step.state for step in self.picture.steps if step.state)
        others = [state for state in states if state not in TONES]
        return TONES | {state: TURNS[n % len(TURNS)] for n, state in enumerate(others)}

    @property
    def states(self) -> list[str]:
        """The states in their order, each once where it stays."""
        named = [step.state for step in self.picture.steps if step.state]
        return [state for state, _ in groupby(named)]

    @property
    def title(self) -> str:
        """The states as a sentence."""
        return " → ".join(self.states) or "Its steps"

    @property
    def description(self) -> str:
        """The picture in words."""
        return "; ".join(
            f"{box.number}. {box.step.call} at {box.step.at:,}"
            + (f": {box.step.becomes}" if box.step.departs else f", then {box.state}")
            for box in self.boxes
        )
