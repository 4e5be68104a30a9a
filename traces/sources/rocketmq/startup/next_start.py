"""Judges the broker's next start: what stops it, and what it would lose, are hazards.

Each version that may start is judged by itself, and a hazard names those that fail.
"""

from __future__ import annotations

from collections.abc import Mapping

from gapless.spec.catalog import SPECS
from gapless.traces.options import Options
from gapless.traces.replay.exact import Departure, replay
from gapless.traces.sources.rocketmq.joining.findings import Breach, StoreFindings
from gapless.traces.sources.rocketmq.startup.start_files import START, StartItem, level_items, start_items, versions_of
from gapless.traces.sources.rocketmq.startup.start_places import StartPlace

SPEC = "startup"
REFUSED = "the broker does not start"  # what every rule says whose breach stops a start


def judge_next_start(judged: StoreFindings, options: Options) -> None:
    """Judges every file and setting that the next start reads."""
    if options.topic is not None or not (options.trace is None or options.trace.startswith("start/")):
        return
    versions = versions_of(judged.store)
    ends = {queue: (run.first, run.end) for queue, run in judged.queues.items()}
    for item in (*start_items(judged.store, judged.store.strays), *level_items(judged.store, ends)):
        if options.trace in (None, item.trace):
            _judge(judged, options, item, versions)


def is_start_refused(judged: StoreFindings) -> bool:
    """True if a version that may start next will not."""
    return any(found.spec == SPEC and found.departure.otherwise == REFUSED for found in judged.feared)


def _judge(judged: StoreFindings, options: Options, item: StartItem, versions: Mapping[int, str]) -> None:
    """Judges one thing by each version, and reports one hazard for each rule that is broken."""
    refused: dict[str, tuple[Departure, list[str]]] = {}
    for number, name in versions.items():
        if number < item.since:
            continue
        events = [START.open(version=number), item.event]
        outcome = replay(SPEC, SPECS[SPEC].initial, events, profile=options.profile, ignored=options.ignored)
        judged.cover(SPEC, outcome.covered)
        if outcome.departure is None:
            judged.joint(judged.end, SPEC, f"{item.trace}/{name}", events)
        else:
            refused.setdefault(outcome.departure.rule, (outcome.departure, []))[1].append(name)
    for departure, names in refused.values():
        others = [name for number, name in versions.items() if name not in names]
        place = StartPlace(item.file, item.offset, item.setting, tuple(names), tuple(others))
        judged.feared.append(Breach(item.trace, judged.store.start, departure, place.as_text))
