"""Rows and findings of what is overdue, as the spec `deadline` has found it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gapless.spec.catalog import rule
from gapless.spec.deadline import TaskKind
from gapless.traces.judging.tallies import TRACES
from gapless.traces.problems import shown
from gapless.traces.report.charts import span
from gapless.traces.report.values import Finding, OverdueRow

SPEC = "deadline"
OVERDUE = rule("deadline/overdue").id
WAITS = rule("deadline/task-is-done-when-its-time-has-come")
LISTED = 100  # of one source, the worst first
TASKS: Mapping[int, str] = {
    TaskKind.HALF: "half",
    TaskKind.OP: "op",
    TaskKind.TIMER: "timer",
    TaskKind.DELAY: "delayed message",
    TaskKind.OPEN: "open transaction",
    TaskKind.END: "decided transaction",
}
"""The words for each kind of task that waits."""


class LateTask(NamedTuple):
    """One task that is overdue: its trace, and the numbers of its state."""

    trace: str
    values: Mapping[str, int]


def overdue_rows(source: str, tasks: Iterable[LateTask]) -> list[OverdueRow]:
    """The rows of a report, the worst first, and as many as one source may have."""
    worst = sorted(tasks, key=lambda one: (-one.values["found"], one.values["due"], one.trace))
    return [
        OverdueRow(
            source=source, trace=shown(one.trace), task=TASKS[one.values["task"]], due=one.values["due"],
            late=one.values["found"],
        )
        for one in worst[:LISTED]
    ]  # fmt: skip


def with_amount(finding: Finding, rows: Sequence[OverdueRow]) -> Finding:
    """The finding of all that is overdue, which names the worst: its trace, and by how much."""
    worst = rows[0]
    others = f"; {finding.count:,} such tasks in all" if finding.count > 1 else ""
    says = f"{worst.trace}: {worst.task} overdue by {span(worst.late)}{others} (docs/operator.md#overdue)"
    return finding.model_copy(
        update={
            "trace": worst.trace,
            "message": says,
            "otherwise": f"{WAITS.otherwise['wait']}; no promise is broken",
            "here": {"overdue": worst.late},
            "traces": [row.trace for row in rows[:TRACES]],
        }
    )
