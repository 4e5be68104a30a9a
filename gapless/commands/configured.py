"""What commands are given that a command line does not say."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gapless.commands.terminal import failed

<<<<<<< HEAD
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
=======
OTHERS = {"explain": ("profile", "config", "client", "spec"), "trace": ("config",), "rules": ("spec",)}
"""The commands beside `check` that take some of the settings."""
>>>>>>> hands


def defaults() -> dict[str, dict[str, Any]]:
    """What each command is given, by the names of its parameters. Exits with 2 where the file cannot be understood."""
    from gapless.settings import settings
    from gapless.traces.problems import UsageError

    try:
        found = {key: _from_here(value) for key, value in settings(Path.cwd()).items()}
    except UsageError as error:
        raise failed(str(error)) from None
    return {"check": found, **{command: _some(found, keys) for command, keys in OTHERS.items()}} if found else {}


def _some(found: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: found[key] for key in keys if key in found}


def _from_here(value: Any) -> Any:
    """A value as the command line would have it: what is told names paths from here."""
    if isinstance(value, list):
        return [_from_here(one) for one in value]
    return os.path.relpath(value) if isinstance(value, Path) else value
