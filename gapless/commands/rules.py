"""`gapless rules`."""

from __future__ import annotations

from gapless.commands.terminal import printing


def rules() -> None:
    """List every rule: id, sentence, what goes wrong without it, how it is established, source."""
    from gapless.traces.rules import established
    from gapless.traces.rules import rules as every

    with printing(0):
        for number, rule in enumerate(every()):
            if number:
                print()
            otherwise = "; ".join(dict.fromkeys(rule.otherwise.values()))
            print(f"{rule.id}\n  {rule.kind}: {rule.because}\n  otherwise: {otherwise}")
            print(f"  established by: {established(rule)}\n  source: {rule.source}")
