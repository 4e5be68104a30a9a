"""Finds the departures of queues that can be reported before the log's end is known."""

from __future__ import annotations

from gapless.traces.options import Options
from gapless.traces.replay.exact import named
from gapless.traces.sources.rocketmq.joining.findings import Breach, RefusedPiece
from gapless.traces.sources.rocketmq.joining.log import StoreJudge
from gapless.traces.sources.rocketmq.queues.queue_ends import QueueEnds
from gapless.traces.sources.rocketmq.segments.results import SplitResult, name_of


def departures(judge: StoreJudge, result: SplitResult) -> int:
    """Counts the departures of the log, of transactions, and of the queues in a result."""
    runs = (judge.judged.queues.get(subject) for segment in result.segments for subject in segment.pieces.subjects)
    more = len(judge.transactions.refused) + len(judge.transactions.bad_ops)
    return sum(run is not None and run.departs for run in runs) + len(judge.judged.breaches) + more


def queue_breaches(judge: StoreJudge, options: Options) -> list[Breach]:
    """Returns the departures of the log and of queues so far.

    A queue that starts again at 0, or that has an entry for an unread part, may be of a topic that was created again.
    """
    judge.judged.end = judge.reached
    suspects = [
        subject
        for subject, run in judge.judged.queues.items()
        if run.suspect and not run.restarted and not _names_unread(run.suspect, judge.reached)
    ]
    QueueEnds(judge.judged, options, judge.queues).report_suspects(suspects)
    restarted = {name_of(subject) for subject, run in judge.judged.queues.items() if run.restarted}
    return [found for found in judge.judged.breaches if found.trace not in restarted]


def _names_unread(suspect: RefusedPiece, reached: int) -> bool:
    arguments = named("queue", suspect.refusal.event)
    return suspect.refusal.event[0].startswith("index") and arguments["position"] >= reached
