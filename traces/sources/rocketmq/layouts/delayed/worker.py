"""Asks the scan for delayed messages, if these are judged."""

from __future__ import annotations

from gapless.traces.options import Options
from gapless.traces.replay.kernels import kernel
from gapless.traces.sources.rocketmq.layouts.delayed.records import COLUMNS, ENTRIES, find_delayed
from gapless.traces.sources.rocketmq.layouts.layout import WorkerSide
from gapless.traces.sources.rocketmq.segments.splits import Sought, sought_among
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.names import SCHEDULE_TOPIC

DELAYED = "delayed"  # begins the names of delayed messages, as traces: level and number follow
RECORDS = sought_among(DELAYED, COLUMNS, find_delayed)


def includes_delayed(options: Options) -> bool:
    """True if delayed messages were selected, which belong to no topic while they wait."""
    return options.topic is None and (options.trace is None or options.trace.startswith(f"{DELAYED}/"))


def needs_delayed_messages(store: StoreDirectory, options: Options) -> bool:
    """True if delayed messages must be found, to compare them with their deliveries."""
    if store.live or store.dledger or not includes_delayed(options):
        return False
    return any(topic == SCHEDULE_TOPIC for topic, _ in store.queues)


def sought(store: StoreDirectory, options: Options) -> tuple[Sought, ...]:
    """Asks for delayed messages, if they are needed."""
    return (RECORDS,) if needs_delayed_messages(store, options) else ()


def prepare(store: StoreDirectory, options: Options) -> None:
    """Compiles the search for them, and their replay."""
    if needs_delayed_messages(store, options):
        for entry in ENTRIES:
            entry.prepare()
        kernel("stage", options.ignored).prepare()


WORKER = WorkerSide(sought, prepare)
