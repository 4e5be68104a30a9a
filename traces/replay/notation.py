"""The notation of steps in reports, in regression files, and on the way to a state."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from enum import IntEnum
from types import MappingProxyType
from typing import Any

from gapless.spec.catalog import State
from gapless.spec.language import Map
from gapless.spec.reading.map_keys import element

Change = tuple[str, int | str, int | str]
"""One change of a step: name, before, after; a value that has a name is given by it."""

KEYS = 3  # shown of one Map: enough to understand a step that clears the whole Map
ASKED, SEEN_THERE, FOR = " asked", " seen", "for "
"""In the name of a value: what an event asks for of a field of that name, what a broker saw of it; and in front of the
variable of a quantifier."""

NOT_ALLOWED = "not allowed"
BROKER_REFUSED = "refused, as the spec requires"
SHOWN_AS_TAKEN = "its outcome is unknown; shown as taken"
SHOWN_AS_NOT_TAKEN = "its outcome is unknown; shown as not taken"
TURNED_AWAY = "refused, though the spec allows it"
SEEN_OTHERWISE = MappingProxyType(
    {  # by the outcome of the event
        "ok": "taken, but another state was recorded after it",
        "inferred": "taken, but another state was recorded after it",
        "refused": f"{BROKER_REFUSED}, but another state was recorded after it",
        "unknown": "its outcome is unknown, and the state recorded after it fits neither outcome",
    }
)
DEPARTING = (NOT_ALLOWED, TURNED_AWAY, *dict.fromkeys(SEEN_OTHERWISE.values()))
"""Results of a step that departs, for each kind of rule and outcome."""

WIDE = 76  # letters of a call, beyond which its changes are no longer aligned in a column


def changes(before: State, after: State) -> tuple[Change, ...]:
    """Return every field and every map value that differs."""
    found: list[Change] = []
    for f in fields(before):
        old, new = getattr(before, f.name), getattr(after, f.name)
        if isinstance(old, Map):
            if old.entries is new.entries:
                continue
            keys = {key for key, _ in set(old.entries.items()) ^ set(new.entries.items())}
            kind = type(old.default)
            found.extend(
                (element(f.name, key), by_name(kind, int(old[key])), by_name(kind, int(new[key])))
                for key in sorted(keys)[:KEYS]
            )
        elif old != new:
            found.append((f.name, called(old), called(new)))
    return tuple(found)


def called(value: int) -> int | str:
    """Return the value's name if it has one, such as PREPARED; otherwise the number."""
    return value.name if isinstance(value, IntEnum) else int(value)


def by_name(kind: Any, value: int) -> int | str:
    """Return the name that `kind` has for the value, if it has one."""
    if isinstance(kind, type) and issubclass(kind, IntEnum) and value in set(kind):
        return kind(value).name
    return value


def of_field(state: State, name: str, value: int) -> int | str:
    """Return a value of a field, or of an element of a Map, by its name if it has one."""
    kept = getattr(state, name)
    return by_name(type(kept.default if isinstance(kept, Map) else kept), value)


def call_of(action: str, args: Mapping[str, int | str]) -> str:
    """Format a step in the notation of stories: `append(number=17, position=40112)`."""
    return f"{action}({', '.join(f'{name}={value}' for name, value in args.items())})"


def changes_text(changed: tuple[Change, ...]) -> str:
    """Format changes on one line."""
    return ", ".join(f"{name} {before} → {after}" for name, before, after in changed) or "nothing changes"


def column(calls: Sequence[tuple[str, str]]) -> int:
    """Return the width of the calls of a story, for the column of results next to them."""
    return min(max((len(text) for text, _ in calls), default=0), WIDE)


def breach(step: str, rule: str) -> str:
    """The sentence, without its end, that a step breaks a rule."""
    return f'{step} breaks the rule "{rule}"'


def consequence(otherwise: str) -> list[str]:
    """Return the line of a story with the consequence of a broken rule; none if its spec has none."""
    return [f"Consequence: {otherwise}."] if otherwise else []


def follows(doc: str) -> str:
    """Return the docstring of a property as a line of a story: *Otherwise X* becomes *Consequence: X*."""
    return re.sub(r"^Otherwise,? ", "Consequence: ", doc)


def values_text(here: Mapping[str, int | str]) -> str:
    """Format values by name on one line; an argument or a recorded value stands next to that of the state."""
    parts = []
    bound = [f"{name.removeprefix(FOR)} = {value}" for name, value in here.items() if name.startswith(FOR)]
    if bound and len(bound) < len(here):
        rest = values_text({name: value for name, value in here.items() if not name.startswith(FOR)})
        return f"{FOR}{', '.join(bound)}: {rest}"
    for name, value in here.items():
        field, who = name, ""
        for kind, verb, expected in ((ASKED, "the step says", "the state has"), (SEEN_THERE, "recorded", "expected")):
            if name.endswith(kind):
                field = name.removesuffix(kind)
                who = f"{verb} {value}" + (f", {expected} {here[field]}" if field in here else "")
        if who:
            parts.append(f"{field}: {who}")
        elif not {name + ASKED, name + SEEN_THERE} & here.keys():
            parts.append(f"{name} = {value}")
    return ("; " if any(": " in one for one in parts) else ", ").join(parts)
