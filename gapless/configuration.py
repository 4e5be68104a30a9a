"""How pytest's tests check recordings: as its command line says, and where that is silent as `[tool.gapless]` does."""

from __future__ import annotations

from typing import Any

import pytest

from gapless.settings import settings
from gapless.traces.problems import UsageError
from gapless.traces.report.threshold import ALSO, Threshold, read_baseline

TAKEN = ("profile", "config", "topic", "only", "ignore", "jobs", "engine", "master")
"""The settings that `check` takes for any recording; a client log is of one, and lies beside it."""

_SETTINGS = pytest.StashKey[dict[str, Any]]()
_THRESHOLD = pytest.StashKey[Threshold]()


def options(config: pytest.Config) -> dict[str, Any]:
    """What is asked for, as `check` takes it. Raises pytest.UsageError."""
    found = _found(config)
    asked = {key: found[key] for key in TAKEN if key in found}
    if profile := config.getoption("gapless_profile"):
        asked["profile"] = profile
    return {"profile": None, **asked, "specs": (*config.getoption("gapless_spec"), *found.get("spec", ()))}


def threshold(config: pytest.Config) -> Threshold:
    """What lets a recording fail: with a baseline only what is new, with `fail-on` more than violations.

    Raises pytest.UsageError.
    """
    if _THRESHOLD not in config.stash:
        found = _found(config)
        also = found.get("fail_on", [])
        if strange := sorted({*also} - {*ALSO}):
            raise pytest.UsageError(f"gapless: tool.gapless.fail-on names {strange[0]!r}, expected {' or '.join(ALSO)}")
        try:
            known = read_baseline(found["baseline"]) if "baseline" in found else {}
        except UsageError as error:
            raise pytest.UsageError(f"gapless: {error}") from None
        config.stash[_THRESHOLD] = Threshold(frozenset({"violation", *also}), known)
    return config.stash[_THRESHOLD]


def _found(config: pytest.Config) -> dict[str, Any]:
    """The settings. Raises pytest.UsageError."""
    if _SETTINGS not in config.stash:
        try:
            config.stash[_SETTINGS] = settings(config.invocation_params.dir)
        except UsageError as error:
            raise pytest.UsageError(f"gapless: {error}") from None
    return config.stash[_SETTINGS]
