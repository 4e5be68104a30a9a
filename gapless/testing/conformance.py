"""Assertions about recordings: that one conforms, or why it does not."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gapless.traces.report.values import Report

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class DoesNotConform(AssertionError):  # noqa: N818 - it names an outcome.
    """A recording departs, or cannot be shown to conform. The message is the report as text, with its stories."""

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report


def assert_conforms(
    paths: Paths, *, profile: str | None = None, redact_key: str | None = None, **options: Any
) -> Report:
    """Check recordings, and return the report of those that conform. Raises DoesNotConform for any other verdict.

    With a `redact_key` the report has hashes under this key in place of names. `options` are those of `gapless.check`,
    which says what they mean, and what else is raised.
    """
    __tracebackhide__ = True  # so that pytest shows the caller's line, and below it the report
    from gapless.traces.check import check

    report = check(paths, profile=profile, **options)
    if redact_key is not None:
        from gapless.traces.report.redaction import redacted

        report = redacted(report, redact_key)
    if report.verdict != "conforms":
        raise DoesNotConform(report)
    return report
