"""The broker's next start, as far as it takes files by their names and lengths: what it stumbles over is a hazard."""

from __future__ import annotations

from collections.abc import Sequence

from gapless.traces.judging.building import STEPS, Events
from gapless.traces.replay.exact import replay
from gapless.traces.sources.rocketmq.joining.judged import Breach
from gapless.traces.sources.rocketmq.joining.stepped import SteppedTrace
from gapless.traces.sources.rocketmq.store.next_start import Stranger


def start_next(trace: SteppedTrace, strange: Sequence[Stranger]) -> None:
    """Take the step if nothing is in its way; else tell of each file that is, without taking it."""
    judged, spec, start = trace.judged, trace.spec, STEPS[trace.spec.name].start
    if not strange:
        trace.take(Events.of(spec, [start(numbered=True, sized=True)]))
    for file in strange:
        event = start(numbered=file.numbered, sized=file.length == file.expected)
        options = trace.options
        refused = replay(spec.name, trace.reached, [event], profile=options.profile, ignored=options.ignored).departure
        if refused:
            judged.feared.append(Breach(trace.name, judged.store.start, refused, file.as_text))
