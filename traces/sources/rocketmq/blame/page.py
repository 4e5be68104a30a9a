"""The table as a page of docs/: per subject, the decision in each circumstance, and the sentences of reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import product
from operator import or_
from typing import TypeAlias

from gapless.traces.sources.rocketmq.blame.situation import (
    GROUPS,
    NONE,
    SENTENCE,
    Circumstance,
    DecisionCell,
    Situation,
)
from gapless.traces.sources.rocketmq.blame.table import situations

HEAD = """\
# When a store accuses its broker

A store may lack something, or have something else than expected, and its broker may still be right: it was killed, the
power was lost, the files were copied one by one while it ran, a setting was changed. This page has every such case that
`gapless check` knows, and its answer. Made of the code that decides, by
`python -m gapless.traces.sources.rocketmq.blame --write`.

| answer | what a report does |
|---|---|
| **violation** | the rule accuses the broker. With a number: the report names another cause, too |
| doubt | damage would look the same as something lawful: *inconclusive*, unless something else departs |
| hazard | all is right now, and the next start will break it |
| note | lawful; the report names it |
| passes | lawful; the report does not name it, or only among what a start will write |

| circumstance | how it is known |
|---|---|
| stopped | in order: there is no `abort` file, and in a DLedger log all entries are committed |
| killed | neither stopped nor copied nor running; a power loss looks the same |
| copied | while its broker ran: the user says so, with `--copied` ([copies](operator.md#copies)) |
| running | a broker has locked the store |
| first life | no broker was ever started on these files again, as the checkpoint of a broker from 5.0 on says |
| later life | one was, or that is not known |

A number behind an answer is that of the sentence in the list below the table.
"""
ENDS = tuple(GROUPS[0])
WORDS = {
    Circumstance.FIRST_LIFE: "first life",
    Circumstance.LATER_LIFE: "later life",
    Circumstance.WITHIN: "before the log's end",
    Circumstance.BEYOND: "beyond the log's end",
    Circumstance.DURABLE: "long on disk when the log ended",
    Circumstance.RECENT: "of the last minute of the log",
}
TITLES = {
    "store": "Files of any kind",
    "queue": "Queues",
    "transaction": "Transactions",
    "client": "Promises to clients",
}
Rows: TypeAlias = "Iterator[tuple[str, tuple[DecisionCell, ...]]]"


class Placeholder(str):
    """A value that is not known, as a sentence of the page shows it."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        one, chooses, many = spec.partition("|")
        noun = many or f"{one}s"
        return f"*{self!s}*" if not chooses else noun if one.startswith("?") else f"*{self!s}* {noun}"


class Placeholders(dict[str, Placeholder]):
    """Every value of a sentence, by its name."""

    def __missing__(self, name: str) -> Placeholder:
        return Placeholder(name)


def made() -> str:
    """Returns the page."""
    subjects: dict[str, list[Situation]] = {}
    for one in situations():
        subjects.setdefault(one.name.partition("/")[0], []).append(one)
    parts = [HEAD, " · ".join(f"[{_title(name)}](#{name})" for name in subjects), ""]
    for name, of_subject in subjects.items():
        parts += [f'## <a id="{name}"></a>{_title(name)}', "", *_table(of_subject), ""]
    return "\n".join(parts)


def _title(subject: str) -> str:
    return TITLES.get(subject, subject.replace("_", " ").capitalize())


def _table(of_subject: Sequence[Situation]) -> Iterator[str]:
    sentences: list[str] = []
    yield "| what is found | and | stopped | killed | copied | running |"
    yield "|---|---|---|---|---|---|"
    for one in of_subject:
        found = f"[{one.name.partition('/')[2].replace('-', ' ')}]({one.source})"
        for when, cells in _rows(one, NONE, one.groups):
            yield f"| {found} | {when} | {' | '.join(_answer(one, cell, sentences) for cell in cells)} |"
            found = ""
    yield ""
    yield from (f"{number}. {text}" for number, text in enumerate(sentences, 1))


def _answer(situation: Situation, cell: DecisionCell, sentences: list[str]) -> str:
    name = cell.decision.value if cell.decision.value != "violation" else "**violation**"
    text = SENTENCE.vformat(situation.template(cell), (), Placeholders())
    if not text or (cell.decision.value in ("passes", "hazard") and not cell.text):
        return name
    if text not in sentences:
        sentences.append(text)
    return f"{name} ({sentences.index(text) + 1})"


def _rows(situation: Situation, known: Circumstance, groups: Sequence[Circumstance], when: str = "") -> Rows:
    """Yields the rows of a situation: the answers after each end of a broker, and in which circumstances."""
    groups = [group for group in groups if group != GROUPS[0]]
    if not groups:
        yield when, tuple(situation.cell(known | end) for end in ENDS)
        return
    first, *others = groups
    branches = [known | one for one in first]
    if len({_answers(situation, one, others) for one in branches}) == 1:
        yield from _rows(situation, branches[0], others, when)
        return
    for one, branch in zip(first, branches, strict=True):
        words = {**WORDS, Circumstance.ON: situation.on, Circumstance.OFF: situation.off}[one]
        yield from _rows(situation, branch, others, f"{when}; {words}" if when else words)


def _answers(situation: Situation, known: Circumstance, groups: Sequence[Circumstance]) -> tuple[DecisionCell, ...]:
    return tuple(situation.cell(reduce(or_, some, known)) for some in product(*groups, ENDS))
