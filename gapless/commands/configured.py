"""`[tool.gapless]` in pyproject.toml: what commands are given that a command line does not say."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gapless.commands.terminal import failed
from gapless.traces.report.formats import FORMATS

FILE = "pyproject.toml"
TEXT, PATH, TEXTS, PATHS, COUNT, FLAG = "a text", "a path", "a list of texts", "a list of paths", "a number", "a flag"
KEYS = {
    "profile": TEXT,
    "config": PATH,
    "client": PATH,
    "spec": PATHS,
    "topic": TEXT,
    "only": TEXTS,
    "ignore": TEXTS,
    "jobs": COUNT,
    "engine": TEXT,
    "master": TEXT,
    "verdicts": PATH,
    "fail-on": TEXTS,
    "baseline": PATH,
    "github": FLAG,
    "redact": FLAG,
    "verbose": FLAG,
    **{form.option: PATH for form in FORMATS},
}
"""The keys, as the options of `gapless check` are called, and what each holds."""
OTHERS = {"explain": ("profile", "config", "client", "spec", "redact"), "trace": ("config",), "rules": ("spec",)}
"""The commands beside `check` that take some of them."""


def defaults() -> dict[str, dict[str, Any]]:
    """What each command is given, by the names of its parameters. Exits with 2 where the file cannot be understood."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (path := folder / FILE).is_file():
            return _from(path)
    return {}


def _from(path: Path) -> dict[str, dict[str, Any]]:
    name = os.path.relpath(path)
    try:
        tool = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {})
    except (OSError, ValueError) as error:
        raise failed(f"{name}: cannot be read ({error})") from None
    given = tool.get("gapless") if isinstance(tool, dict) else None
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise failed(f"{name}: tool.gapless is {given!r}, expected a table")
    found = {key.replace("-", "_"): _value(name, path.parent, key, value) for key, value in given.items()}
    return {"check": found, **{command: _some(found, keys) for command, keys in OTHERS.items()}}


def _some(found: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: found[key] for key in keys if key in found}


def _value(file: str, folder: Path, key: str, value: Any) -> Any:
    """A value as the command line would have it; paths are relative to the file. Exits with 2."""
    kind = KEYS.get(key)
    if kind is None:
        raise failed(f"{file}: tool.gapless has a key {key!r}, expected some of {', '.join(KEYS)}")
    if not _is(kind, value):
        raise failed(f"{file}: tool.gapless.{key} is {value!r}, expected {kind}")
    if kind == PATH:
        return os.path.relpath(folder / value)
    return [_spec(folder, one) for one in value] if kind == PATHS else value


def _is(kind: str, value: Any) -> bool:
    """Whether a value is of that kind."""
    if kind in (TEXTS, PATHS):
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    return type(value) is {TEXT: str, PATH: str, COUNT: int, FLAG: bool}[kind]


def _spec(folder: Path, named: str) -> str:
    """A spec by its file, or by its module, which is found by its name."""
    return os.path.relpath(folder / named) if named.endswith(".py") or os.sep in named else named
