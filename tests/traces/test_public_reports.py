"""Public bug reports: a check says of each what `docs/reports.md` states."""

from __future__ import annotations

from pathlib import Path

import pytest

from gapless import Report, check
from tests.support.reports import page
from tests.support.reports.report import PublicReport

pytestmark = pytest.mark.slow


def names(report: Report, tells: str) -> list[str]:
    """All that a check names in one part of its report."""
    if tells == "anomaly":
        return list(report.anomalies)
    if tells in ("reason", "note"):
        return [line for source in report.sources for line in (source.reasons if tells == "reason" else source.notes)]
    return [finding.rule for finding in report.findings if finding.severity == tells]


@pytest.mark.parametrize("public", page.REPORTS, ids=lambda public: public.issues)
def test_a_public_report_gets_the_verdict_of_its_row(public: PublicReport, tmp_path: Path) -> None:
    report = check([public.lay(tmp_path)])
    assert report.verdict == public.verdict, report.model_dump_json(indent=1)
    if public.tells == "nothing":
        assert not names(report, "violation") + names(report, "hazard")
    else:
        assert any(public.names in name for name in names(report, public.tells)), report.model_dump_json(indent=1)
    assert (report.verdict == "departs") == bool(names(report, "violation"))


ACCUSED = [report for report in page.REPORTS if "`--profile strict` departs" in report.remark]


@pytest.mark.parametrize("public", ACCUSED, ids=lambda public: public.issues)
def test_the_strict_profile_departs_where_the_page_states_so(public: PublicReport, tmp_path: Path) -> None:
    assert check([public.lay(tmp_path)], profile="strict").verdict == "departs"


def test_the_page_is_made_of_these_reports() -> None:
    written = page.PAGE.read_text(encoding="utf-8")
    assert written == page.made(), "write it again: python -m tests.support.reports.page"


def test_no_report_is_listed_twice() -> None:
    listed = [issue for report in page.REPORTS for issue in report.issues.split(" · ")]
    listed += [issue for issues in page.UNSEEN.values() for issue in issues.split(" · ")]
    assert len(listed) == len(set(listed))
