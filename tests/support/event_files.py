"""Files of events, written as calls, `append(1, 340)`, that become events one position apart; and verdict tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pyarrow import parquet

from gapless.spec.catalog import SPECS
from gapless.traces.events import schema
from gapless.traces.events.schema import Event

UnplacedEvent = Callable[[int], Event]
"""An event that still has to learn its position."""


def step(action: str, *args: int, spec: str = "queue", trace: str = "TopicTest/3", **more: Any) -> UnplacedEvent:
    named = dict(zip(SPECS[spec].parameters[action], args, strict=True))
    return lambda at: Event(source="a", spec=spec, trace=trace, position=at, action=action, args=named, **more)


def opened(number: int = 0, start: int = 0, **more: Any) -> UnplacedEvent:
    return step("open", number, start, **more)


def append(number: int, position: int, **more: Any) -> UnplacedEvent:
    return step("append", number, 1, position, 340, 0, **more)


def index(number: int, position: int, **more: Any) -> UnplacedEvent:
    return step("index", number, position, 340, 0, **more)


def record(position: int, *, time: int = 9, size: int = 100, **more: Any) -> UnplacedEvent:
    return step("append", position, size, position, 1, 1, 1, 1, time, **({"spec": "log", "trace": "commitlog"} | more))


def in_log(action: str, *args: int, **more: Any) -> UnplacedEvent:
    return step(action, *args, **({"spec": "log", "trace": "commitlog"} | more))


QUEUE = [opened(), append(0, 0), append(1, 340), index(0, 0), index(1, 340), step("settle", 680)]
LOG = [
    in_log("open", 0, 1024),
    record(0),
    record(100),
    in_log("flush", 200),
    in_log("acknowledge", 100),
    in_log("roll", 200, 824, 1),
    record(1024),
    in_log("crash", 1024),
    in_log("checkpoint", 9),
]
ODD: list[list[Callable[[str], UnplacedEvent]]] = [
    [lambda t: opened(trace=t), lambda t: append(0, 0, trace=t), lambda t: index(0, 0, trace=t)],
    [lambda t: opened(trace=t), lambda t: append(0, 0, trace=t), lambda t: index(0, 9, trace=t)],
    [lambda t: opened(trace=t), lambda t: append(1, 0, trace=t)],
    [lambda t: append(0, 0, trace=t), lambda t: index(0, 0, trace=t)],
    [lambda t: opened(trace=t), lambda t: append(0, 0, trace=t, outcome="unknown"), lambda t: index(0, 0, trace=t)],
    [lambda t: opened(trace=t), lambda t: append(0, 0, trace=t, outcome="refused")],
    [lambda t: opened(trace=t), lambda t: append(0, 0, trace=t, saw={"end": 1}), lambda t: index(0, 0, trace=t)],
    [lambda t: opened(trace=t), lambda t: append(0, 0, trace=t, saw={"end": 7})],
    [lambda t: opened(trace=t), lambda t: append(0, 0, trace=t), lambda t: append(0, 340, trace=t)],  # recreated
    [
        lambda t: in_log("open", 0, 1024, trace=t),
        lambda t: record(0, trace=t),
        lambda t: record(100, trace=t),
        lambda t: in_log("flush", 200, trace=t, outcome="unknown"),
        lambda t: in_log("acknowledge", 100, trace=t),
    ],
    [lambda t: in_log("open", 0, 1024, trace=t), lambda t: record(0, trace=t), lambda t: record(200, trace=t)],
]
"""Traces of every kind: good, broken, without a beginning, refused, unknown, seen."""


def mixed_traces(kinds: Iterable[int], *, mingled: int) -> list[UnplacedEvent]:
    """Traces of these kinds; an event of each in turn, for as many at a time as are `mingled`."""
    traces = [[make(f"T/{number}") for make in ODD[kind]] for number, kind in enumerate(kinds)]
    groups = [traces[low : low + mingled] for low in range(0, len(traces), mingled)]
    return [event for group in groups for turn in zip_longest(*group) for event in turn if event is not None]


def cut(path: Path, rows: int) -> None:
    """The same Parquet file in row groups of so many rows."""
    parquet.write_table(parquet.read_table(path), path, row_group_size=rows)


def table_in(folder: Path) -> list[dict[str, Any]]:
    """The rows of a verdict table, in an order of their own."""
    rows = [row for path in folder.glob("*.parquet") for row in parquet.read_table(path).to_pylist()]
    return sorted(rows, key=lambda row: (row["spec"], row["trace"]))


def write(path: Path, events: list[UnplacedEvent]) -> None:
    """These events, in a file."""
    schema.write_events(path, [tell(at) for at, tell in enumerate(events)])
