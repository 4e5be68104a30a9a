"""The ids of a spec's rules: reports and `--ignore` know a rule by nothing else, so each is the id of one rule."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from gapless.spec.catalog import id_of
from gapless.spec.language import APPLIES, ASSUMED
from gapless.spec.reading.complaints import Complaint
from gapless.spec.reading.declarations import SpecFile

NO_RULES = (APPLIES, ASSUMED)
A_WORD = re.compile(r"[\w.-]+")
ANOTHER = "another id for one of them: reports know a rule by its id alone"


class _RuleSite(NamedTuple):
    """A rule, as a `require` states it."""

    rule: str
    line: int
    function: str
    because: str
    otherwise: str


def rule_ids(file: SpecFile) -> Iterator[Complaint]:
    """Ids that stand for two rules, or that no command line can name. `otherwise` may differ from step to step."""
    for rule, stated in groupby(sorted(_stated(file)), key=lambda one: one.rule):
        every = list(stated)
        if rule in NO_RULES:
            yield Complaint(every[0].line, f"`{rule!r}` as an id", "another one: this one is of what is no rule")
        elif not A_WORD.fullmatch(rule):
            yield Complaint(every[0].line, f"`{rule!r}` as an id", "letters and digits, joined by hyphens")
        for one in every:
            here = next(other for other in every if other.function == one.function)
            yield from _another(one, every[0], "because") or _another(one, here, "otherwise")
    yield from _properties(file)


def _another(one: _RuleSite, first: _RuleSite, sentence: str) -> list[Complaint]:
    """The complaint about an id that stands for another rule here than at first; empty where it does not."""
    here, its = getattr(one, sentence), getattr(first, sentence)
    word = f"`{one.rule!r}` with {here!r}, and with {its!r} in line {first.line}"
    return [] if here == its else [Complaint(one.line, word, ANOTHER)]


def _stated(file: SpecFile) -> Iterator[_RuleSite]:
    """The rules of steps, as far as they are laid out as they should be."""
    for function in file.functions.values():
        for node in ast.walk(function):
            match node:
                case ast.Call(func=ast.Name(id="require"), args=[_, ast.Constant(value=str(rule))]):
                    texts = {one.arg: one.value.value for one in node.keywords if isinstance(one.value, ast.Constant)}
                    yield _RuleSite(rule, node.lineno, function.name, *(str(texts.get(name)) for name in SENTENCES))


SENTENCES = ("because", "otherwise")


def _properties(file: SpecFile) -> Iterator[Complaint]:
    """Properties whose names differ by an article alone, which ids do without."""
    tuples = (file.tuple_of(name) or () for name in file.states_taken if name != "ACTIONS")
    named = {ast.unparse(member) for members in tuples for member in members}
    found: dict[str, str] = {}
    for name, function in file.functions.items():
        if name in named and (other := found.setdefault(id_of(name), name)) != name:
            yield Complaint(function.lineno, f"`{name}`, whose id {id_of(name)!r} is that of `{other}`", "another name")
