"""How a step is told, wherever one is: in a report, in a regression file, on the way to a state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from enum import IntEnum
from typing import Any

from gapless.spec.catalog import State
from gapless.spec.language import Map

Change = tuple[str, int | str, int | str]
"""What a step changed, from what, to what; a value that has a name is called by it."""

KEYS = 3  # of one Map that are told: a step that forgets a whole Map is understood from these
WIDE = 76  # letters of a call, beyond which what it changed is no longer told in one column


def changes(before: State, after: State) -> tuple[Change, ...]:
    """Every field and every map value that differs."""
    found: list[Change] = []
    for f in fields(before):
        old, new = getattr(before, f.name), getattr(after, f.name)
        if isinstance(old, Map):
            keys = {k for k, v in new.entries.items() if old[k] != v} | {k for k in old.entries if k not in new.entries}
            kind = type(old.default)
            found.extend(
                (f"{f.name}[{key}]", by_name(kind, int(old[key])), by_name(kind, int(new[key])))
                for key in sorted(keys)[:KEYS]
            )
        elif old != new:
            found.append((f.name, called(old), called(new)))
    return tuple(found)


def called(value: int) -> int | str:
    """The value's name if it has one, such as PREPARED; otherwise the number."""
    return value.name if isinstance(value, IntEnum) else int(value)


def by_name(kind: Any, value: int) -> int | str:
    """The name that `kind` has for the value, if it has one."""
    if isinstance(kind, type) and issubclass(kind, IntEnum) and value in set(kind):
        return kind(value).name
    return value


def call_of(action: str, args: Mapping[str, int | str]) -> str:
    """A step in the notation of stories: `append(number=17, position=40112)`."""
    return f"{action}({', '.join(f'{name}={value}' for name, value in args.items())})"


def told(changed: tuple[Change, ...]) -> str:
    """What changed, in a line."""
    return ", ".join(f"{name} {before} → {after}" for name, before, after in changed) or "nothing changes"


def column(calls: Sequence[tuple[str, str]]) -> int:
    """How wide the calls of a story are, beside which stands what became of each."""
    return min(max((len(text) for text, _ in calls), default=0), WIDE)
