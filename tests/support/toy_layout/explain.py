"""Explains a file without a token."""

from __future__ import annotations

from gapless.traces.report.values import Where
from gapless.traces.sources.rocketmq.joining.findings import Breach, StoreFindings
from gapless.traces.sources.rocketmq.layouts.layout import Explanation
from tests.support.toy_layout.judge import opened_files


def place(judged: StoreFindings, found: Breach) -> Where:
    """The end of the file."""
    tokens = opened_files(judged)[found.trace.rpartition("/")[2]]
    return Where(file=found.trace, offset=len(str(tokens)))


def message(found: Breach) -> str:
    """Describes the violation in one sentence without its end."""
    return f"there are {found.arguments['permits']} tokens"


def context(judged: StoreFindings, _found: Breach) -> list[str]:
    """Names the number of records."""
    return [f"the log has {judged.records} records"]


EXPLANATION = Explanation(place, message, context)
