"""The files that a report can be written as. A new format is a module with a function, and a line here."""

from __future__ import annotations

from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a command line that only prints its help loads no format
    from gapless.traces.report.values import Report


@dataclass(frozen=True)
class Format:
    """A format. `option`: of `gapless check` · `writer`: its `module:function`, from a report to the text of a file."""

    option: str
    writer: str
    help: str
    announced: bool = False  # a person opens the file: the text says where it is

    def written(self, report: Report) -> str:
        """The report in this format."""
        text: str = resolve_name(self.writer)(report)
        return text


FORMATS = [
    Format("json", "gapless.traces.report.values:Report.as_json", "Write the report as JSON; - for standard output."),
    Format("report", "gapless.traces.report.html:html", "Write the report as an HTML page.", announced=True),
]
