"""The files that a report can be written as. A new format is a module with a function, and a line here."""

from __future__ import annotations

from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a command line that only prints its help loads no format
    from gapless.traces.report.threshold import Threshold
    from gapless.traces.report.values import Report


@dataclass(frozen=True)
class Format:
    """A format. `option`: of `gapless check` · `writer`: its `module:function`, from a report to the text of a file.

    `by_threshold`: the writer takes the `Threshold` too, for the file tells what lets the check fail.
    """

    option: str
    writer: str
    help: str
    announced: bool = False  # a person opens the file: the text says where it is
    by_threshold: bool = False

    def written(self, report: Report, threshold: Threshold) -> str:
        """The report in this format."""
        text: str = resolve_name(self.writer)(report, *([threshold] if self.by_threshold else []))
        return text


FORMATS = [
    Format("json", "gapless.traces.report.values:Report.as_json", "Write the report as JSON; - for standard output."),
    Format("junit", "gapless.traces.report.outputs.junit:junit", "Write the findings as JUnit XML.", by_threshold=True),
    Format(
        "sarif", "gapless.traces.report.outputs.sarif:sarif", "Write the findings as SARIF 2.1.0.", by_threshold=True
    ),
    Format("report", "gapless.traces.report.page.html:html", "Write the report as an HTML page.", announced=True),
]
