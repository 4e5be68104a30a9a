"""Options of checks in pytest: those of its command line, else those of `[tool.gapless]`."""

from __future__ import annotations

import os
from typing import Any

import pytest

from gapless.commands.options import KEY_VARIABLE
from gapless.settings import settings
from gapless.traces.problems import UsageError
from gapless.traces.report.redaction import new_key
from gapless.traces.report.threshold import BY, FAIL_ON, Threshold, read_baseline
from gapless.traces.suggestions import one_of

TAKEN = ("profile", "config", "copied", "only_broker", "topic", "only", "ignore", "jobs", "engine", "master")
"""The settings that `check` takes for any recording; a client log belongs to one, and lies next to it."""

ONE_RUN = "PYTEST_XDIST_TESTRUNUID"
"""The variable in which workers of pytest-xdist find what is random, and the same for all of a run."""

_SETTINGS = pytest.StashKey[dict[str, Any]]()
_THRESHOLD = pytest.StashKey[Threshold]()
_KEY = pytest.StashKey[str]()


def options(config: pytest.Config) -> dict[str, Any]:
    """Collect the options, as `check` takes them. Raises pytest.UsageError."""
    found = _found(config)
    asked = {key: found[key] for key in TAKEN if key in found}
    if "trace_topic" in found:
        asked["trace_topics"] = found["trace_topic"]
    if profile := config.getoption("gapless_profile"):
        asked["profile"] = profile
    return {"profile": None, **asked, "specs": (*config.getoption("gapless_spec"), *found.get("spec", ()))}


def redact_key(config: pytest.Config) -> str | None:
    """The key under which names are replaced by hashes; None if names may be shown.

    Workers of one run come to the same key, for they must find the same tests. Raises pytest.UsageError.
    """
    found = _found(config)
    if not found.get("redact"):
        return None
    if _KEY not in config.stash:
        given = os.environ.get(KEY_VARIABLE)
        if "baseline" in found and not given:
            raise pytest.UsageError(
                f"gapless: tool.gapless.redact: a baseline knows findings by their names; set {KEY_VARIABLE}, the same "
                "each time"
            )
        config.stash[_KEY] = given or os.environ.get(ONE_RUN) or new_key()
    return config.stash[_KEY]


def threshold(config: pytest.Config) -> Threshold:
    """Make the threshold: with a baseline only new findings fail, with `fail-on` more than violations.

    Raises pytest.UsageError.
    """
    if _THRESHOLD not in config.stash:
        found = _found(config)
        also = found.get("fail_on", [])
        if (asked := found.get("baseline_by", "place")) not in BY:
            raise pytest.UsageError(f"gapless: tool.gapless.baseline-by is {asked!r}, expected {one_of(BY)}")
        try:
            known, by = (
                read_baseline(found["baseline"], found.get("baseline_by")) if "baseline" in found else ({}, "place")
            )
        except UsageError as error:
            raise pytest.UsageError(f"gapless: {error}") from None
        try:
            config.stash[_THRESHOLD] = Threshold.of(also, known, by)
        except ValueError as error:
            raise pytest.UsageError(
                f"gapless: tool.gapless.fail-on names {error.args[0]!r}, expected {one_of(FAIL_ON)}"
            ) from None
    return config.stash[_THRESHOLD]


def _found(config: pytest.Config) -> dict[str, Any]:
    """The settings. Raises pytest.UsageError."""
    if _SETTINGS not in config.stash:
        try:
            config.stash[_SETTINGS] = settings(config.invocation_params.dir)
        except UsageError as error:
            raise pytest.UsageError(f"gapless: {error}") from None
    return config.stash[_SETTINGS]
