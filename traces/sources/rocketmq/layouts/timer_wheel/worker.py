"""Asks the scan for messages with a delivery time, if the timer wheel is judged."""

from __future__ import annotations

from pathlib import Path

from gapless.traces.options import Options
from gapless.traces.sources.rocketmq.layouts.timer_messages import has_waiting_messages, worker_side
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.names import TIMER_LOG

TIMERS = "timerwheel"  # begins the names of its times, as traces


def includes_timer_wheel(options: Options) -> bool:
    """True if the timer wheel was selected: it belongs to no topic."""
    return options.topic is None and (options.trace is None or options.trace.startswith(f"{TIMERS}/"))


def needs_messages(store: StoreDirectory, options: Options) -> bool:
    """True if messages with a delivery time must be found, to compare them with the timer wheel."""
    there = has_waiting_messages(store) and includes_timer_wheel(options)
    return there and (Path(store.path) / TIMER_LOG).is_dir()


WORKER = worker_side(needs_messages)
