"""The page of public bug reports, `docs/reports.md`: `python -m tests.support.reports.page` writes it again."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator

from tests.support.command_line import ROOT
from tests.support.reports import coordinators, log_and_queues, stages
from tests.support.reports.report import TRACKERS, PublicReport

PAGE = ROOT / "docs" / "reports.md"
STAGES = log_and_queues.STAGES | stages.STAGES | coordinators.STAGES
REPORTS = tuple(report for reports in STAGES.values() for report in reports)
HEAD = """\
# What a check says of public bug reports

Bug reports that users of RocketMQ and Pulsar filed, each tried on a store or a recording that shows what it
describes. Look up here what `gapless check` would have answered, and where it answers nothing.

* *altered*: a real broker's store was changed, in code, as the report describes, and nothing else in it. *booted*: a
  real broker of that version wrote it so, or was started on it. The names are those of
  [the recordings](../tests/recordings/README.md); the changes are in `tests/support/reports/`.
* **departs** is exit code 1, **inconclusive** 3, **conforms** 0. A *hazard* is no departure: it tells what is in the
  way of a start or a reader, and `--fail-on hazard` makes it exit code 1. An *anomaly* is what brokers do by design,
  or may do; `--profile strict` accuses it.
* **silent** means that a check names nothing of it. Why not stands there.

A test checks that each verdict is the one in the table.
"""
INVISIBLE = """\
## <a id="invisible"></a>What no file shows

Faults of a broker's memory, its threads or its answers leave nothing to be read. gapless cannot see these from a store:

| reports | why not |
|---|---|
| {stale} | the least number of an empty queue, in memory |
| {offset} | what a consumer is answered that asks beyond the end |
| {busy} | a lock's time that stays after an exception: every later send is refused |
| {checks} | whom a check asks, and whether the question arrives |
| {spin} | a thread that spins, or ends: without traffic a store is the same |
| {readers} | which messages of a compacted topic or a tier readers are offered first |
| {buffer} | Pulsar's transaction buffers, snapshots and pending acknowledgements: no recording has them |
| {permits} | permits inside a Pulsar client, beyond what its requests and answers show |
"""
UNSEEN = {
    "stale": "rocketmq 10417",
    "offset": "rocketmq 4215",
    "busy": "rocketmq 3459",
    "checks": "rocketmq 9791 · rocketmq 8316 · rocketmq 1694",
    "spin": "rocketmq 10966 · rocketmq 8955 · rocketmq 9486",
    "readers": "rocketmq 7540 · rocketmq 7345",
    "buffer": "pulsar 16042 · pulsar 17040 · pulsar 19814 · pulsar 10431 · pulsar 24945",
    "permits": "pulsar 25038 · pulsar 14131 · pulsar 21504",
}


def made() -> str:
    """The page."""
    outcomes = Counter(outcome(report) for report in REPORTS)
    counts = ", ".join(f"{outcomes[name]} {name}" for name in OUTCOMES if outcomes[name])
    parts = [HEAD, f"{len(REPORTS)} were tried: {counts}.\n"]
    for stage, reports in STAGES.items():
        rows = "\n".join(row(report) for report in reports)
        parts.append(f"## {stage}\n\n{TITLES}\n{rows}\n")
    parts.append(INVISIBLE.format(**{name: links(issues) for name, issues in UNSEEN.items()}))
    return "\n".join(parts)


TITLES = "| report | what a store shows | what gapless says | how it was tried |\n|---|---|---|---|"
OUTCOMES = ("depart", "inconclusive", "with a hazard", "with an anomaly", "with a note", "silent")


def outcome(report: PublicReport) -> str:
    """Names the way in which a check answers: one of `OUTCOMES`."""
    if report.verdict != "conforms":
        return "depart" if report.verdict == "departs" else report.verdict
    named = {"hazard": "with a hazard", "anomaly": "with an anomaly", "note": "with a note"}
    return named.get(report.tells, "silent")


def row(report: PublicReport) -> str:
    """One line of a table."""
    return f"| {links(report.issues)} {report.says} | {report.shows} | {answer(report)} | {report.on} |"


def answer(report: PublicReport) -> str:
    """The verdict, what names it, and the remark."""
    remark = f"; {report.remark}" if report.remark else ""
    verdict = f"**{report.verdict}**"
    if report.tells == "nothing":
        return f"{verdict}, **silent**{remark}"
    if report.tells == "violation":
        return f"{verdict}: `{report.names}`{remark}"
    if report.tells in ("hazard", "anomaly"):
        return f"{verdict}, {report.tells} `{report.names}`{remark}"
    return f"{verdict}, a {report.tells}: *{report.names}*{remark}"


def links(issues: str) -> str:
    """Return the threads, as links."""
    return " ".join(_links(issues))


def _links(issues: str) -> Iterator[str]:
    for issue in issues.split(" · "):
        tracker, _, number = issue.partition(" ")
        name, address = TRACKERS[tracker]
        shown = f"{name}{number}" if name.endswith("-") else f"{name}#{number}"
        yield f"[{shown}]({address.format(number)})"


def main() -> int:
    """Write it."""
    PAGE.write_text(made(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
