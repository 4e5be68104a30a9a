"""Recordings and stories as pytest's tests. A recording is checked once, when its tests are collected."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from gapless.testing.configuration import options, redact_key, threshold
from gapless.testing.conformance import DoesNotConform
from gapless.traces.check import check
from gapless.traces.events.files import is_event_file
from gapless.traces.problems import EngineFailure, UsageError, shown
from gapless.traces.report.redaction import Redactor
from gapless.traces.report.values import Finding, Report
from gapless.traces.sources.registry import recognised
from gapless.traces.stories.playing import differences, text_of
from gapless.traces.stories.story import NoStory, is_story, read

WHOLE = "whole"
"""The test of what is not the matter of one trace: nothing to judge, a file that cannot be read."""


class PlainFailure(AssertionError):  # noqa: N818 - it names an outcome.
    """A test fails; the message is all that is to be shown of it."""


# -- recordings ----------------------------------------------------------------------------------------------------


def recording_file(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """The tests of a file, if it holds events; a client log, which may be called like one, holds none."""
    if not is_event_file(path) or path.name == "client.ndjson":
        return None
    return RecordingFile.from_parent(parent, path=path)


def recording_folder(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """The tests of a folder, if it is a recording."""
    try:
        known = recognised(path)
    except OSError:
        return None
    return None if known is None else RecordingFolder.from_parent(parent, path=path)


@dataclass(frozen=True)
class TraceVerdict:
    """A trace of a recording as the verdict table has it.

    `rule`: that it breaks, if it departs · `label`: the trace as it is shown, without its name if so asked.
    """

    spec: str
    trace: str
    verdict: str
    rule: str | None
    label: str


class RecordingFile(pytest.File):
    """A file of events."""

    def collect(self) -> Iterator[pytest.Item]:
        """A test for each trace."""
        return _tests_of(self)


class RecordingFolder(pytest.Directory):
    """A store, or another folder that is a recording as a whole."""

    def collect(self) -> Iterator[pytest.Item]:
        """A test for each trace."""
        return _tests_of(self)


def _tests_of(recording: pytest.File | pytest.Directory) -> Iterator[pytest.Item]:
    """A test for each trace that was judged; one for all if they are many, or if something else is wrong."""
    report, judged = _checked(_from_here(recording.path), recording.config)
    reported = {finding.trace for finding in report.violations}
    departing = {one.label for one in judged if one.verdict == "departs"}
    if not judged or len(judged) > recording.config.getoption("gapless_traces"):
        yield RecordingItem.from_parent(recording, name=WHOLE, report=report)
        return
    if any(source.reasons for source in report.sources) or not reported <= departing:
        yield RecordingItem.from_parent(recording, name=WHOLE, report=report)
    names = Counter(one.trace for one in judged)
    for one in judged:
        name = one.label if names[one.trace] == 1 else f"{one.spec} {one.label}"
        yield TraceItem.from_parent(recording, name=name, report=report, judged=one)


def _from_here(path: Path) -> Path:
    """A path below the working directory as people type it, so that stories read alike on any machine."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _checked(path: Path, config: pytest.Config) -> tuple[Report, list[TraceVerdict]]:
    """The report of a recording, and the verdict of every trace in its order; with hashes for names, if so asked.

    Raises CollectError.
    """
    with tempfile.TemporaryDirectory(prefix="gapless-") as folder:
        table = Path(folder) / "verdicts"
        try:
            report = check(path, verdicts=table, **options(config))
        except (UsageError, EngineFailure) as error:
            raise pytest.Collector.CollectError(str(error)) from None
        rows = [row for file in sorted(table.glob("*.parquet")) for row in parquet.read_table(file).to_pylist()]
    key = redact_key(config)
    names = None if key is None else Redactor(report, key, [row["trace"] for row in rows])
    found = {
        (row["spec"], row["trace"]): TraceVerdict(
            row["spec"],
            row["trace"],
            row["verdict"],
            row["rule"],
            shown(names.name(row["trace"]) if names else row["trace"]),
        )
        for row in sorted(rows, key=lambda row: (row["spec"], row["trace"]))
    }
    return _as_asked_here(names.report() if names else report), list(found.values())


def _as_asked_here(report: Report) -> Report:
    """The report with the option of pytest in its advice, in place of that of `gapless check`."""
    sources = [
        one.model_copy(
            update={
                "reasons": [
                    why.replace("; --spec ", "; --gapless-spec ").replace(": --spec ", ": --gapless-spec ")
                    for why in one.reasons
                ]
            }
        )
        for one in report.sources
    ]
    return report.model_copy(update={"sources": sources})


class RecordingItem(pytest.Item):
    """A recording as a whole."""

    def __init__(self, *, report: Report, **more: Any) -> None:
        super().__init__(**more)
        self.report = report

    def runtest(self) -> None:
        """Fail unless it conforms, but for what is known."""
        limit = threshold(self.config)
        if limit.verdict(self.report) != "conforms":
            raise DoesNotConform(self.report)
        if self.report.verdict != "conforms":
            pytest.skip(", ".join(limit.sentences(self.report)))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The report alone."""
        return _shown(self, excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the place of the test, as pytest prints it."""
        return self.path, None, f"gapless: {self.name}"


class TraceItem(pytest.Item):
    """One trace of a recording."""

    def __init__(self, *, report: Report, judged: TraceVerdict, **more: Any) -> None:
        super().__init__(**more)
        self.report = report
        self.judged = judged

    def runtest(self) -> None:
        """Fail with the trace's story unless it conforms, or what is wrong with it is known."""
        if self.judged.verdict not in ("conforms", "departs"):
            reasons = [reason for source in self.report.sources for reason in source.reasons]
            raise PlainFailure("\n".join([f"{self.judged.label} is {self.judged.verdict}.", *reasons]))
        limit = threshold(self.config)
        found = [one for one in self.report.findings if self._is_mine(one)]
        failing = [one for one in found if limit.fails(one)]
        if self.judged.verdict == "departs" and not failing:
            if any(map(limit.is_known, found or self._standing_for_it())):
                pytest.skip("known from the baseline")
            failing = self._by_itself()
        if failing:
            raise PlainFailure("\n\n".join("\n".join(finding.story or [finding.message]) for finding in failing))

    def _is_mine(self, finding: Finding) -> bool:
        """True if the finding is about this trace."""
        return (finding.spec, finding.trace) == (self.judged.spec, self.judged.label)

    def _standing_for_it(self) -> list[Finding]:
        """Findings of other traces that stand for this one's."""
        mine = (self.judged.spec, self.judged.rule)
        return [one for one in self.report.violations if (one.spec, one.rule) == mine]

    def _by_itself(self) -> list[Finding]:
        """Judge the trace alone, if another stands for it in the report."""
        again = check(_from_here(self.path), trace=self.judged.trace, **options(self.config))
        if (key := redact_key(self.config)) is not None:
            again = Redactor(again, key, [self.judged.trace]).report()
        mine = self.judged.label
        if found := [one for one in again.violations if one.trace == mine]:
            return found
        raise PlainFailure(f"{mine} departs: {self.judged.rule}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The stories alone."""
        return _shown(self, excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the place of the test, as pytest prints it."""
        return self.path, None, f"gapless: {self.name}"


def _shown(item: pytest.Item, excinfo: pytest.ExceptionInfo[BaseException], style: Any) -> Any:
    """Return the text that pytest prints for a failure; for ours, the message alone."""
    if isinstance(excinfo.value, PlainFailure | DoesNotConform):
        return str(excinfo.value)
    return pytest.Item.repr_failure(item, excinfo, style)


# -- stories -------------------------------------------------------------------------------------------------------


def story_file(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """The test of a story. Other files of this name are left alone unless pytest was asked for what is ours."""
    if not is_story(path) and not parent.config.getoption("gapless"):
        return None
    return StoryFile.from_parent(parent, path=path)


class StoryFile(pytest.File):
    """A file with a story."""

    def collect(self) -> Iterator[pytest.Item]:
        """Its only test."""
        yield StoryItem.from_parent(self, name="story")


class StoryItem(pytest.Item):
    """A story: what it says of its steps is what becomes of them."""

    def runtest(self) -> None:
        """Fail with the story as it goes now."""
        try:
            story = read(self.path)
        except NoStory as error:
            raise PlainFailure(str(error)) from None
        if wrong := list(differences(story)):
            now = text_of(story).rstrip()
            raise PlainFailure(
                "\n".join([f"{shown(self.path.name)} goes otherwise.", "", *wrong, "", "It goes:", "", now])
            )

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the differences, and the story as it goes."""
        return _shown(self, excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the place of the test, as pytest prints it."""
        return self.path, None, f"gapless: {self.path.stem}"
