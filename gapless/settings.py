"""`[tool.gapless]` in pyproject.toml: defaults for the command line and for pytest."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

from gapless.traces.problems import UsageError, twice
from gapless.traces.report.formats import FORMATS
from gapless.traces.suggestions import did_you_mean

FILE = "pyproject.toml"
TEXT, PATH, TEXTS, PATHS, COUNT, FLAG = "a text", "a path", "a list of texts", "a list of paths", "a number", "a flag"
KEYS = {
    "profile": TEXT,
    "config": PATH,
    "client": PATH,
    "copied": FLAG,
    "trace-topic": TEXTS,
    "only-broker": FLAG,
    "spec": PATHS,
    "topic": TEXT,
    "only": TEXTS,
    "ignore": TEXTS,
    "jobs": COUNT,
    "engine": TEXT,
    "master": TEXT,
    "conf": TEXTS,
    "verdicts": PATH,
    "verdicts-mode": TEXT,
    "fail-on": TEXTS,
    "baseline": PATH,
    "baseline-by": TEXT,
    "github": FLAG,
    "redact": FLAG,
    "verbose": FLAG,
    **{form.option: PATH for form in FORMATS},
}
"""The keys, as the options of `gapless check` are called, and what each holds."""


def settings(here: Path) -> dict[str, Any]:
    """Read the next pyproject.toml, in a folder or above it, by the names of parameters; paths are absolute.

    Raises UsageError where it cannot be understood.
    """
    for folder in (here, *here.parents):
        if (path := folder / FILE).is_file():
            return _from(path, os.path.relpath(path, here))
    return {}


def _from(path: Path, name: str) -> dict[str, Any]:
    """Read a file; `name`: the file, as seen from the working directory."""
    try:
        tool = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {})
    except (OSError, ValueError) as error:
        raise UsageError(f"{name}: cannot be read ({error})") from None
    given = tool.get("gapless") if isinstance(tool, dict) else None
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise UsageError(f"{name}: tool.gapless is {given!r}, expected a table")
    plain = [key.replace("_", "-") for key in given]
    if key := twice(plain):
        raise UsageError(f"{name}: tool.gapless has {key} twice, with - and with _: leave out one")
    return {
        key.replace("-", "_"): _value(name, path.parent, key, value)
        for key, value in zip(plain, given.values(), strict=True)
    }


def _value(file: str, folder: Path, key: str, value: Any) -> Any:
    """A value as its parameter has it; paths are relative to the file, addresses elsewhere to nothing.

    Raises UsageError.
    """
    kind = KEYS.get(key)
    if kind is None:
        hint = did_you_mean(key, KEYS) or f", expected some of {', '.join(KEYS)}"
        raise UsageError(f"{file}: tool.gapless has a key {key!r}{hint}")
    if not _is(kind, value):
        raise UsageError(f"{file}: tool.gapless.{key} is {value!r}, expected {kind}")
    if kind == PATH and re.match("[a-z][a-z0-9]+://", value):
        if key != "verdicts":  # which alone are written elsewhere, too
            raise UsageError(f"{file}: tool.gapless.{key} is {value!r}, expected a path on a disk of this machine")
        return value
    if kind == PATH:
        return folder / value
    return [_spec(folder, one) for one in value] if kind == PATHS else value


def _is(kind: str, value: Any) -> bool:
    """True if a value is of that kind."""
    if kind in (TEXTS, PATHS):
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    return type(value) is {TEXT: str, PATH: str, COUNT: int, FLAG: bool}[kind]


def _spec(folder: Path, named: str) -> str | Path:
    """A spec by its file, or by its module, which is found by its name."""
    return folder / named if named.endswith(".py") or os.sep in named else named
