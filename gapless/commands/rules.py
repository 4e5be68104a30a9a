"""`gapless rules`."""

from __future__ import annotations

from gapless.commands.options import SpecOption
from gapless.commands.specs import chosen
from gapless.commands.terminal import printing
from gapless.spec.catalog import SPECS


def rules(spec: SpecOption = None) -> None:
    """List every rule: id, sentence, what goes wrong without it, how it is established, source.

    With --spec, those of specs of yours alone.
    """
    from gapless.traces.rules import established
    from gapless.traces.rules import rules as every

    own = tuple(one for one in chosen(spec) if SPECS.get(one.name) is not one) if spec else ()
    names = {one.name for one in chosen(spec)} if spec else set(SPECS)
    with printing(0):
        for number, rule in enumerate(rule for rule in every(own) if rule.spec in names):
            if number:
                print()
            otherwise = "; ".join(dict.fromkeys(rule.otherwise.values()))
            print(f"{rule.id}\n  {rule.kind}: {rule.because}\n  otherwise: {otherwise}")
            print(f"  established by: {established(rule)}\n  source: {rule.source}")
