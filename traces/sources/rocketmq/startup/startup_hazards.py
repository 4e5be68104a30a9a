"""The broker's next start, by names and lengths of files: files that stop it are hazards."""

from __future__ import annotations

from collections.abc import Sequence

from gapless.traces.judging.building import STEPS, Events
from gapless.traces.replay.exact import replay
from gapless.traces.sources.rocketmq.joining.findings import Breach
from gapless.traces.sources.rocketmq.joining.incremental_replay import IncrementalReplay
from gapless.traces.sources.rocketmq.startup.startup_files import UnexpectedFile


def judge_startup(trace: IncrementalReplay, strange: Sequence[UnexpectedFile]) -> None:
    """Replays the start step, or reports each file that prevents it."""
    judged, spec, start = trace.judged, trace.spec, STEPS[trace.spec.name].start
    if not strange:
        trace.replay(Events.of(spec, [start(numbered=True, sized=True)]))
    for file in strange:
        event = start(numbered=file.numbered, sized=file.length == file.expected)
        options = trace.options
        refused = replay(spec.name, trace.reached, [event], profile=options.profile, ignored=options.ignored).departure
        if refused:
            judged.feared.append(Breach(trace.name, judged.store.start, refused, file.as_text))
