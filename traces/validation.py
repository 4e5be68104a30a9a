"""Words the refusal of a model: the field, its value and the expected one, never in the words of its library."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from pydantic import ValidationError

from gapless.traces.problems import shown
from gapless.traces.suggestions import did_you_mean, one_of

LONGEST = 40  # characters of a value that are shown
UNIT_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
"""Milliseconds of a unit of time, by its letter."""
DURATION = re.compile(rf"(\d{{1,9}})({'|'.join(UNIT_MS)})")

EXPECTED: Mapping[str, str] = {
    "int": "a whole number",
    "float": "a number",
    "decimal": "a number",
    "finite": "a finite number",
    "string": "a text",
    "bool": "true or false",
    "dict": "an object",
    "mapping": "an object",
    "model": "an object",
    "dataclass": "an object",
    "list": "a list",
    "tuple": "a list",
    "set": "a list",
    "frozen": "a list",
    "iterable": "a list",
    "none": "null",
    "date": "a date",
    "datetime": "a date with a time",
    "time": "a time of day",
    "bytes": "bytes",
    "path": "a path",
    "url": "an address",
    "uuid": "a UUID",
}
"""The value that is expected, by the first word of the kind of error."""

BOUNDS: Mapping[str, tuple[str, str]] = {
    "greater_than_equal": ("ge", "at least {}"),
    "greater_than": ("gt", "more than {}"),
    "less_than_equal": ("le", "at most {}"),
    "less_than": ("lt", "less than {}"),
    "multiple_of": ("multiple_of", "a multiple of {}"),
    "string_pattern_mismatch": ("pattern", "a text of the form {}"),
    "literal_error": ("expected", "{}"),
    "enum": ("expected", "{}"),
    "string_too_short": ("min_length", "a text of at least {} letters"),
    "string_too_long": ("max_length", "a text of at most {} letters"),
    "too_short": ("min_length", "at least {} of them"),
    "too_long": ("max_length", "at most {} of them"),
}
"""The value that is expected, with the number or the names that the error has under that key."""


def refused(error: ValidationError, fields: Collection[str] = (), *, skip: int = 0, of: str = "") -> str:
    """A sentence for the first thing that is wrong; all unknown and missing fields of the same object at once.

    `fields`: those that are known, for a suggestion · `skip`: parts of a place that are no fields · `of`: the owner of
    inner fields.
    """
    errors = error.errors(include_url=False)
    first = errors[0]
    place = first["loc"][skip:]
    if first["type"] in ("missing", "extra_forbidden"):
        return _names(errors, place[:-1], fields, skip)
    where = ".".join(map(str, place))
    if "error" in first.get("ctx", {}):  # a sentence of our own
        return f"{where}: {first['ctx']['error']}" if where else str(first["ctx"]["error"])
    if first["type"] == "json_invalid":
        return f"not JSON ({str(first.get('ctx', {}).get('error', '')).replace('line 1 column', 'column')})"
    owner = f" of {of}" if of and len(place) > 1 else ""
    names = str(first.get("ctx", {}).get("expected", "")).replace("'", "").replace(" or ", ", ").split(", ")
    hint = did_you_mean(str(first["input"]), names) if first["type"] in ("literal_error", "enum") else ""
    return f"{where or 'this'}{owner} is {value(first['input'])}, expected {expectation(first)}{hint}"


def value(given: Any) -> str:
    """The value as JSON has it, a text in single quotes; cut if it is long."""
    try:
        text = repr(given) if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(given)
    return shown(text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…")


def _names(errors: Any, inside: tuple[int | str, ...], fields: Collection[str], skip: int) -> str:
    """The fields of one object that are unknown or missing."""
    found: dict[str, list[str]] = {"extra_forbidden": [], "missing": []}
    for one in errors:
        *outer, name = one["loc"][skip:] or ("",)
        if one["type"] in found and tuple(outer) == inside:
            found[one["type"]].append(str(name))
    unknown, missing = found["extra_forbidden"], found["missing"]
    of = f" of {'.'.join(map(str, inside))}" if inside else ""
    parts = []
    if unknown:
        hint = did_you_mean(unknown[0], missing or fields) if len(unknown) == 1 and not inside else ""
        if not (hint or missing or inside) and fields:
            hint = f", expected {one_of(fields)}"
        parts.append(f"unknown field{'s' * (len(unknown) > 1)} {shown(', '.join(unknown))}{of}{hint}")
    if missing:
        parts.append(f"missing: {', '.join(missing)}{'' if unknown else of}")
    return "; ".join(parts)


def expectation(error: Any) -> str:
    """The value that one error expects, in prose."""
    kind, context = str(error["type"]), error.get("ctx", {})
    if kind in BOUNDS:
        key, form = BOUNDS[kind]
        return form.format(str(context.get(key, "")).replace("'", ""))
    if kind.startswith("union_tag"):
        return one_of(str(context.get("expected_tags", "one of its kinds")).replace("'", "").split(", "))
    return EXPECTED.get(kind.partition("_")[0], "another value")


def milliseconds(text: str) -> int | None:
    """The length of a time such as `60s`, in ms; None for a text that is none."""
    found = DURATION.fullmatch(text)
    return int(found[1]) * UNIT_MS[found[2]] if found else None
