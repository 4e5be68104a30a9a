"""The order in which findings about a store explain one another: the log, then queues, then all else."""

from __future__ import annotations

from collections.abc import Sequence

from gapless.spec.catalog import rule
from gapless.traces.report.values import Finding
from gapless.traces.report.wording import plural
from gapless.traces.sources.rocketmq.clients.promises import OF_CLIENTS
from gapless.traces.sources.rocketmq.layouts import registry
from gapless.traces.sources.rocketmq.layouts.layout import OF_TABLES, OF_THE_LOG
from gapless.traces.sources.rocketmq.report import GAPS

CLIENTS = (
    rule("queue/message-that-was-acknowledged-is-in-the-log-where-the-answer-said").id,
    rule("queue/message-that-was-acknowledged-is-what-its-producer-sent").id,
    rule("queue/client-sent-the-message").id,
    *OF_CLIENTS,
)
"""Rules about what clients were answered: the part of the store that they name may be gone for another reason."""
LAST = 4
RANKS = {"log": 0, "queue": OF_THE_LOG, "delivery": LAST}


def rank(finding: Finding) -> int:
    """The place of a finding among others: lower ones may explain higher ones."""
    if finding.rule in CLIENTS:
        return LAST
    layout = registry.layout_of(finding.spec)
    return layout.explanation.rank if layout else RANKS.get(finding.spec, OF_TABLES)


def with_causes_first(findings: Sequence[Finding]) -> list[Finding]:
    """Returns the findings, those about the log first; a gap in the log names the number that it may explain."""
    if not findings:
        return []
    first, *others = sorted(findings, key=rank)
    later = sum(finding.count for finding in others if rank(finding) > rank(first))
    if first.rule not in GAPS or not later:
        return [first, *others]
    more = f"this may explain the {plural(later, 'violation')} below"
    update = {"message": f"{first.message}; {more}", "summary": f"{first.summary}; {more}"}
    return [first.model_copy(update=update), *others]
