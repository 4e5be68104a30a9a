"""`gapless rules`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from gapless.commands.options import SpecOption
from gapless.commands.specs import chosen
from gapless.commands.terminal import failed, printing
from gapless.spec.catalog import SPECS

if TYPE_CHECKING:
    from gapless.spec.catalog import Rule


def rules(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RULE|SPEC]...",
            help="Rules by id, or by a part of it; a spec for all of its rules; default: every rule.",
            show_default=False,
        ),
    ] = None,
    spec: SpecOption = None,
) -> None:
    """List rules: id, sentence, what goes wrong without it, how it is established, source.

    With --spec, those of specs of yours alone.
    """
    from gapless.traces.rules import claimed, established
    from gapless.traces.rules import rules as every

    own = tuple(one for one in chosen(spec) if SPECS.get(one.name) is not one) if spec else ()
    of = {one.name for one in chosen(spec)} if spec else set(SPECS)
    known = [rule for rule in every(own) if rule.spec in of]
    known += [rule for one in own for rule in claimed(one)]
    with printing(0):
        for number, rule in enumerate(_selected(known, names or ())):
            if number:
                print()
            otherwise = "; ".join(filter(None, dict.fromkeys(rule.otherwise.values())))
            print(f"{rule.id}\n  {rule.kind}: {rule.because}")
            if otherwise:  # a property may have no docstring
                print(f"  otherwise: {otherwise}")
            print(f"  established by: {established(rule)}\n  source: {rule.source}")


def _selected(known: Sequence[Rule], names: Sequence[str]) -> Iterable[Rule]:
    """The rules that names select, in their order; all without names. Exits with 2 for a name that selects none."""
    if not names:
        return known
    ids = {rule.id for name in names for rule in _matching(known, name)}
    return [rule for rule in known if rule.id in ids]


def _matching(known: Sequence[Rule], name: str) -> Sequence[Rule]:
    """The rules of one name: exact, of the spec, by a beginning, by a part; the first of these that finds any."""
    from gapless.traces.check import no_such_rule

    ways = (
        lambda rule: rule.id == name,
        lambda rule: rule.spec == name.rstrip("/"),
        lambda rule: rule.id.startswith(name),
        lambda rule: name in rule.id,
    )
    for way in ways:
        if found := [rule for rule in known if way(rule)]:
            return found
    raise failed(no_such_rule(name, {rule.id for rule in known}))
