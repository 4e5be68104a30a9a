"""A situation: what a store shows, and the decision about its broker in each circumstance.

The specs judge facts. A fact accuses a broker only if nothing else explains it: a kill, a power loss, a copy of a
running broker, a setting that was changed. The cells of a situation say when, and with which sentence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, Flag, auto
from functools import reduce
from itertools import product
from operator import or_
from string import Formatter

from gapless.traces.report.wording import plural

SAY_SO = "--copied says so"  # that a store was copied while its broker ran
LOST_END = "legal if the log lost its end with the power, damage otherwise"
POWER_LOSS = "legal after a power loss, damage otherwise"


class Decision(Enum):
    """The end of a situation; `VIOLATION`: its spec judges it, and a step that it refuses accuses the broker."""

    VIOLATION = "violation"
    DOUBT = "doubt"
    NOTE = "note"
    HAZARD = "hazard"
    PASS = "passes"  # noqa: S105 - no password


class Circumstance(Flag):
    """A fact about a store, or about what was found in it; a cell names it in small letters."""

    STOPPED = auto()  # in order: there is no abort file
    KILLED = auto()
    COPIED = auto()  # while its broker ran, as the user says
    RUNNING = auto()
    FIRST_LIFE = auto()  # no broker was started on these files again
    LATER_LIFE = auto()  # one was, or that is not known
    WITHIN = auto()  # what was found lies before the log's end
    BEYOND = auto()
    DURABLE = auto()  # it was long on disk when the log ended
    RECENT = auto()
    ON = auto()  # as each situation says
    OFF = auto()


KNOWN, NONE = Circumstance, Circumstance(0)
GROUPS = (
    KNOWN.STOPPED | KNOWN.KILLED | KNOWN.COPIED | KNOWN.RUNNING,
    KNOWN.FIRST_LIFE | KNOWN.LATER_LIFE,
    KNOWN.WITHIN | KNOWN.BEYOND,
    KNOWN.DURABLE | KNOWN.RECENT,
    KNOWN.ON | KNOWN.OFF,
)
"""Circumstances of which one excludes the others."""


def place(*, beyond: bool) -> Circumstance:
    """Returns the circumstance of what lies beyond the log's end, or does not."""
    return KNOWN.BEYOND if beyond else KNOWN.WITHIN


def switch(*, on: bool) -> Circumstance:
    """Returns the circumstance of a situation's own question."""
    return KNOWN.ON if on else KNOWN.OFF


class Sentence(Formatter):
    """Formats sentences: `{count:row|rows}` is a number with its noun, `{count:?its|their}` a word for that number."""

    def format_field(self, value: object, spec: str) -> str:
        """Returns one value as text."""
        one, chooses, many = spec.partition("|")
        if not chooses or not isinstance(value, int):
            return format(value, spec)
        return (one[1:] if value == 1 else many) if one.startswith("?") else plural(value, one, many)


SENTENCE = Sentence()


@dataclass(frozen=True)
class DecisionCell:
    """The decision in some circumstances; of each group that one of `when` names, it needs one that is named.

    `text`: follows what was found, or is a sentence of its own if `alone`; of a violation, what else may be the cause.
    """

    decision: Decision
    text: str = ""
    when: tuple[Circumstance, ...] = ()
    alone: bool = False

    def covers(self, known: Circumstance) -> bool:
        """True if it is about these circumstances."""
        return any(all(not one & group or one & group & known for group in GROUPS) for one in self.when)


@dataclass(frozen=True)
class Situation:
    """A finding that a store may show.

    `name`: its subject and its own name · `source`: a place in docs/ · `found`: the beginning of sentences · `on`,
    `off`: what these words say here. The last cell may have no circumstances: it is about all the others.
    """

    name: str
    source: str
    found: str
    cells: tuple[DecisionCell, ...]
    on: str
    off: str

    def cell(self, known: Circumstance) -> DecisionCell:
        """Returns the one cell that is about these circumstances."""
        (found,) = [one for one in self.cells if one.covers(known)] or [one for one in self.cells if not one.when]
        return found

    @property
    def groups(self) -> tuple[Circumstance, ...]:
        """The groups of circumstances on which the decision depends."""
        return tuple(group for group in GROUPS if any(one & group for cell in self.cells for one in cell.when))

    def combinations(self) -> list[Circumstance]:
        """Returns every combination of the circumstances on which the decision depends."""
        return [reduce(or_, some, NONE) for some in product(*self.groups)]

    def template(self, cell: DecisionCell) -> str:
        """Returns the sentence of a cell, without its values."""
        return cell.text if cell.alone or cell.decision is Decision.VIOLATION else joined(self.found, cell.text)

    def sentence(self, cell: DecisionCell, values: dict[str, object]) -> str:
        """Returns what a report says in a cell."""
        return SENTENCE.format(self.template(cell), **values)


def situation(name: str, source: str, found: str, *cells: DecisionCell, on: str = "", off: str = "") -> Situation:
    """Returns a situation."""
    return Situation(name, source, found, cells, on, off)


def joined(found: str, text: str) -> str:
    """Joins what was found and what it may mean."""
    return found + (text if not text or text[0] in ",; " else f": {text}")


def accuse(*when: str, unless: str = "") -> DecisionCell:
    """Returns the cell of a violation. `when`: circumstances, as in "killed or copied, first life"."""
    return DecisionCell(Decision.VIOLATION, unless, _known(when))


def doubt(text: str, *when: str, alone: bool = False) -> DecisionCell:
    """Returns the cell of an open question."""
    return DecisionCell(Decision.DOUBT, text, _known(when), alone)


def note(text: str, *when: str, alone: bool = False) -> DecisionCell:
    """Returns the cell of something lawful that a report names."""
    return DecisionCell(Decision.NOTE, text, _known(when), alone)


def fear(*when: str) -> DecisionCell:
    """Returns the cell of a hazard."""
    return DecisionCell(Decision.HAZARD, "", _known(when))


def pass_by(*when: str, text: str = "") -> DecisionCell:
    """Returns the cell of something lawful that a report does not name. `text`: of what the next start writes."""
    return DecisionCell(Decision.PASS, text, _known(when))


def _known(when: tuple[str, ...]) -> tuple[Circumstance, ...]:
    return tuple(
        reduce(or_, (Circumstance[name.upper().replace(" ", "_")] for name in re.split(" or |, ", one))) for one in when
    )
