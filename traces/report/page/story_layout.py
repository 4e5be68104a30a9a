"""The parts of a story as a page arranges them: the rule and the values, the steps with their changes, the rest."""

from __future__ import annotations

import re
from typing import NamedTuple

from gapless.traces.replay.notation import FOR
from gapless.traces.report.values import Finding
from gapless.traces.report.wording import line_kind, parted, story_of

CHANGE = re.compile(r"(?P<name>[A-Za-z_]\w*(?:\[-?\d+\])?) (?P<before>\S+) → (?P<after>[^\s,]+)(?:, )?")
CALL = re.compile(r"\s*(?P<number>\d+)\. (?P<call>.*?\S)(?: at (?P<place>(?:line|row) \d+))?\s*")
LEFT_OUT = re.compile(r"[\d,]+ of [\d,]+ events .* (?:is|are) left out\.")
KEY = 3  # changes of one step that its line shows


class StoryChange(NamedTuple):
    """A field or map element that a step changed. `is_read`: the broken rule reads it."""

    name: str
    before: str
    after: str
    is_read: bool


class StoryStepLine(NamedTuple):
    """A step of a story. `fate`: its outcome in words where it is no change; `place`: where it was recorded."""

    number: str
    call: str
    place: str
    fate: str
    changes: list[StoryChange]
    departs: bool

    @property
    def key_changes(self) -> list[StoryChange]:
        """The changes that the rule reads; the first ones if it reads none of them."""
        return [change for change in self.changes if change.is_read] or self.changes[:KEY]


class StoryLayout(NamedTuple):
    """A story by its parts. `notes`: its sentences that are neither the rule nor the consequence."""

    steps: list[StoryStepLine]
    observed: list[str]
    consequence: str
    notes: list[str]
    left_out: str
    again: str


def story_layout(finding: Finding) -> StoryLayout:
    """The parts of a finding's story."""
    steps: list[StoryStepLine] = []
    observed, notes, rest = list[str](), list[str](), {"consequence": "", "left_out": "", "again": ""}
    read = {re.sub(r" (asked|seen)$", "", name) for name in finding.here}
    for number, line in enumerate(story_of(finding)):
        kind = line_kind(number, line)
        if kind in ("step", "departs"):
            steps.append(_step(line, read, departs=kind == "departs"))
        elif line.startswith("Here: "):
            observed = _values(line.removeprefix("Here: ").removesuffix("."))
        elif line.startswith("Consequence: "):
            rest["consequence"] = line.removeprefix("Consequence: ")
        elif LEFT_OUT.match(line):
            rest["left_out"] = line
        elif kind == "again":
            rest["again"] = line.removeprefix("Again: ")
        elif line and kind != "needs" and not line.startswith("Rule: ") and (number or not finding.story):
            notes.append(line)
    return StoryLayout(steps, observed, notes=notes, **rest)


def _step(line: str, read: set[str], *, departs: bool) -> StoryStepLine:
    call, became = parted(line)
    found = CALL.fullmatch(call)
    number, text, place = (found["number"], found["call"], found["place"] or "") if found else ("", call.strip(), "")
    changes = [StoryChange(c["name"], c["before"], c["after"], c["name"] in read) for c in CHANGE.finditer(became)]
    return StoryStepLine(number, text, place, CHANGE.sub("", became).strip(), changes, departs)


def _values(text: str) -> list[str]:
    """The values of a line; the numbers of a quantifier are one of them."""
    numbers, colon, rest = text.partition(": ") if text.startswith(FOR) else ("", "", text)
    values = rest.split("; ") if ": " in rest else rest.split(", ")
    return [numbers, *values] if colon else [text] if numbers else values
