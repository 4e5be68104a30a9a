"""Defaults of commands, from `[tool.gapless]` in pyproject.toml."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gapless.commands.terminal import failed

OTHERS = {
    "compare": ("config", "jobs"),
    "explain": ("profile", "config", "client", "copied", "trace_topic", "only_broker", "spec", "redact"),
    "trace": ("config",),
    "rules": ("spec",),
}
"""The commands other than `check` that take some of the settings."""


def defaults() -> dict[str, dict[str, Any]]:
    """Read the defaults of each command, by the names of its parameters. Exits with 2 if the file is wrong."""
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
    """A value as the command line would have it: messages name paths from here."""
    if isinstance(value, list):
        return [_from_here(one) for one in value]
    return os.path.relpath(value) if isinstance(value, Path) else value
