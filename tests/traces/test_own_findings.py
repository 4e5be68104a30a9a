"""Findings of a user's spec: their groups, the values in their stories, and steps that none surely took."""

import json
from pathlib import Path
from typing import Any

from gapless import check
from gapless.traces.report.page import html
from gapless.traces.report.page.story_layout import story_layout
from gapless.traces.report.values import Report
from gapless.traces.stories.playing import differences
from gapless.traces.stories.story import parsed

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


def here(report: Report) -> str:
    (line,) = (line for one in report.findings for line in one.story if line.startswith("Here: "))
    return line


def test_a_finding_at_rest_shows_the_number_and_all_that_the_property_reads(tmp_path: Path) -> None:
    lost = judged(tmp_path, of("a", "put", 0), of("a", "take", 0), of("a", "put", 1), of("a", "end"))
    assert here(lost) == "Here: for job = 1: jobs = 2, tries[1] = 0."
    assert lost.findings[0].here == {"for job": 1, "jobs": 2, "tries[1]": 0}
    assert story_layout(lost.findings[0]).observed == ["for job = 1", "jobs = 2", "tries[1] = 0"]


def test_a_finding_at_rest_shows_all_numbers_of_a_property(tmp_path: Path) -> None:
    twice = [of("a", action, job) for job in (0, 1) for action in ("put", "take", "ack", "take")]
    assert here(judged(tmp_path, *twice, of("a", "end"))) == (
        "Here: for a = 0, b = 1: jobs = 2, tries[0] = 2, tries[1] = 2."
    )


def test_a_story_of_a_finding_at_rest_may_state_some_of_its_values(tmp_path: Path) -> None:
    """Older stories state fewer."""
    (tmp_path / "jobs.py").write_text(JOBS, encoding="utf-8")
    text = "gapless story 1\nspec: jobs.py\n\n 1. put(job=0)\n 2. end()   not allowed\n\nHere: tries[0] = {}.\n"
    right, wrong = (parsed(text.format(value), tmp_path / "lost.story") for value in (0, 1))
    assert not [*differences(right)]
    assert len([*differences(wrong)]) == 1


def test_steps_that_none_surely_took_are_counted_by_their_outcome(tmp_path: Path) -> None:
    """They are there: *no such step* would be false."""
    doubts = [
        of("a", "put", 0),
        of("a", "take", 0, "unknown"),
        of("a", "take", 0, "unknown"),
        of("a", "ack", 1, "refused"),
    ]
    behind = [of("b", "ack", 0), of("b", "expire", 0), of("c", "put", 0), of("c", "end")]
    report = judged(tmp_path, *doubts, *behind)
    lines = [line for line in report.not_exercised if "lack an end" not in line]
    assert lines == [
        "jobs.take: never taken for certain in events.ndjson: 2 unknown",
        "jobs.ack: never taken for certain in events.ndjson: 1 refused, 1 not allowed",
        "jobs.expire: never taken for certain in events.ndjson: 1 not judged",
        "jobs.end: never taken for certain in events.ndjson: 1 not allowed",
    ]
    page = html.html(report)
    assert "ack <b>1 refused, 1 not allowed</b>" in page
    assert "end <b>1 not allowed</b>" in page
    assert "<b>never</b>" not in page


def test_a_step_that_is_not_recorded_is_no_such_step(tmp_path: Path) -> None:
    report = judged(tmp_path, of("a", "put", 0))
    assert "jobs.take: no such step in events.ndjson" in report.not_exercised
    assert "take <b>never</b>" in html.html(report)
