"""Asks the scan for messages with a delivery time, if the table of timers is judged."""

from __future__ import annotations

from pathlib import Path

from gapless.traces.options import Options
from gapless.traces.sources.rocketmq.layouts.message_database import FOLDER
from gapless.traces.sources.rocketmq.layouts.timer_messages import has_waiting_messages, worker_side
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory

TIMER_TABLE = "timers-rocksdb"  # begins the names of timers, as traces: time and log position follow


def includes_timer_table(options: Options) -> bool:
    """True if the table of timers was selected: it belongs to no topic."""
    return options.topic is None and (options.trace is None or options.trace.startswith(f"{TIMER_TABLE}/"))


def needs_messages(store: StoreDirectory, options: Options) -> bool:
    """True if messages with a delivery time must be found, to compare them with the table of timers."""
    there = has_waiting_messages(store) and includes_timer_table(options) and not store.copied
    return there and (Path(store.path) / FOLDER).is_dir()


WORKER = worker_side(needs_messages)
