"""Findings of a user's spec: what is one of them, and what a report says of steps that none surely took."""

import json
from pathlib import Path
from typing import Any

from gapless import check
from gapless.traces.report.values import Report

JOBS = '''from dataclasses import dataclass

from gapless.spec.language import Map, Number, implies, replace, require


@dataclass(frozen=True, slots=True)
class State:
    jobs: int = 0
    leased: Map[Number, bool] = Map(False)
    tries: Map[Number, int] = Map(0)


def put(s: State, job: Number) -> State:
    require(job == s.jobs, "counted", because="jobs are counted", otherwise="two are one")
    return replace(s, jobs=s.jobs + 1)


def take(s: State, job: Number) -> State:
    require(not s.leased[job], "free", because="the job is free", otherwise="it is done twice")
    return replace(s, leased=s.leased.set(job, True), tries=s.tries.set(job, s.tries[job] + 1))


def ack(s: State, job: Number) -> State:
    require(s.leased[job], "leased", because="the job is leased", otherwise="a job without a worker is done")
    return replace(s, leased=s.leased.set(job, False))


def expire(s: State, job: Number) -> State:
    require(s.leased[job], "leased", because="the job is leased", otherwise="a job is given out twice")
    return replace(s, leased=s.leased.set(job, False))


def it_counts(s: State) -> bool:
    """Otherwise it does not."""
    return s.jobs >= 0


def every_job_was_tried(s: State, job: Number) -> bool:
    """Otherwise a job is lost."""
    return implies(0 <= job < s.jobs, s.tries[job] > 0)


def no_two_jobs_were_tried_twice(s: State, a: Number, b: Number) -> bool:
    """Otherwise two workers are slow."""
    return not (0 <= a < b < s.jobs and s.tries[a] == 2 and s.tries[b] == 2)


INITIAL = State()
ACTIONS = (put, take, ack, expire)
INVARIANTS = (it_counts,)
AT_REST = (every_job_was_tried, no_two_jobs_were_tried_twice)
'''

Step = tuple[str, str, dict[str, int], str]
"""Trace, action, arguments, outcome."""


def of(trace: str, action: str, job: int | None = None, outcome: str = "ok") -> Step:
    return trace, action, {} if job is None else {"job": job}, outcome


def judged(folder: Path, *steps: Step, **options: Any) -> Report:
    (folder / "jobs.py").write_text(JOBS, encoding="utf-8")
    lines = [json.dumps({"schema": "gapless-events", "version": 1, "profile": "strict"})]
    for position, (trace, action, args, outcome) in enumerate(steps):
        event = {"source": "s", "spec": "jobs", "trace": trace, "position": position, "action": action, "args": args}
        lines.append(json.dumps(event | {"outcome": outcome}))
    (folder / "events.ndjson").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return check(str(folder / "events.ndjson"), specs=[str(folder / "jobs.py")], **options)


def test_two_steps_that_break_rules_of_one_name_are_two_findings(tmp_path: Path) -> None:
    """The consequences differ."""
    quick = [of("a", "put", 0), of("a", "expire", 0), of("b", "put", 0), of("b", "ack", 0), of("c", "ack", 0)]
    exact = [of("d", "put", 0, "unknown"), of("d", "expire", 0)]
    found = judged(tmp_path, *quick, *exact).findings
    assert [(one.rule, one.otherwise, one.count, one.traces) for one in found] == [
        ("jobs/leased", "a job is given out twice", 2, ["a", "d"]),
        ("jobs/leased", "a job without a worker is done", 2, ["b", "c"]),
    ]
