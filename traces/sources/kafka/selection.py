"""The traces that a check was asked for: a partition by TOPIC-N, a producer in it by TOPIC-N/ID, a topic, or all."""

from __future__ import annotations

from gapless.traces.options import Options


def includes_partition(options: Options, trace: str, topic: str) -> bool:
    """True if a partition is to be read: it, or one of its producers, is asked for."""
    if options.trace is not None:
        return options.trace == trace or options.trace.startswith(f"{trace}/")
    return options.topic is None or options.topic == topic
