"""Events as rows of a table, with some that are none, and what a check of files says of each trace."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from gapless import check
from gapless.spec.catalog import SPECS
from tests.support.event_files import ODD, mixed_traces, table_in

Row = dict[str, Any]
"""One event: `trace`, `position`, `action`, `args`, and maybe `outcome` and `saw`."""

NAMES = ["", "T/1", "T/10", "T/2", "t/1", "Ω", "a b", "é", "💧"]
COLUMNS = ("trace", "verdict", "rule", "position", "events")
FAULTS = ("action", "argument", "more", "flag", "outcome", "saw", "position", "twice")


def _queue_step(draw: st.DrawFn, number: int) -> Row:
    action = draw(st.sampled_from(["append", "append", "index", "index", "settle", "rebuild"]))
    at = max(0, number + draw(st.sampled_from([0, 0, 0, 0, -1, 1])))
    sizes = {"position": 340 * at, "size": 340, "tag": 0}
    args = {
        "append": {"number": at, "count": 1, **sizes},
        "index": {"number": at, **sizes},
        "settle": {"upto": 340 * at},
        "rebuild": {},
    }[action]
    return {"action": action, "args": args}


@st.composite
def traces(draw: st.DrawFn, longest: int = 12) -> tuple[list[Row], set[str]]:
    """Rows of some traces of the spec `queue` in any order, and the names of unreadable traces."""
    rows: list[Row] = []
    unreadable = set()
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1)):
        mine = _trace(draw, longest)
        position = draw(st.integers(-3, 3))
        for row in mine:
            row |= {"trace": name, "position": position}
            position += draw(st.integers(1, 3))
        if draw(st.integers(0, 4)) == 0:
            _break(draw, mine)
            unreadable.add(name)
        rows += mine
    return draw(st.permutations(rows)), unreadable


def every_kind() -> tuple[list[Row], set[str]]:
    """The same of traces of every kind, mingled, and of each kind that cannot be read."""
    kinds = [kind for kind, steps in enumerate(ODD) if steps[0]("")(0).spec == "queue"]
    events = [one(at) for at, one in enumerate(mixed_traces(kinds * 2, mingled=2 * len(kinds)))]
    rows: list[Row] = [event.model_dump(include={"trace", "position", "action", "args", "outcome"}) for event in events]
    for row, event in zip(rows, events, strict=True):
        row.update({} if event.saw is None else {"saw": event.saw})
    mine = [next(row for row in reversed(rows) if row["trace"] == f"T/{number}") for number in range(4)]
    mine[0]["action"], mine[1]["position"], mine[2]["args"] = "apend", None, {"number": 0}
    rows.append(dict(mine[3]))
    return rows[::-1], {f"T/{number}" for number in range(4)}


def _trace(draw: st.DrawFn, longest: int) -> list[Row]:
    steps: list[Row] = []
    if draw(st.integers(0, 5)):
        steps.append({"action": "open", "args": {"number": 0, "start": 0}})
    is_good = draw(st.booleans())
    for number in range(draw(st.integers(1, longest))):
        if is_good:
            of = {"number": number // 2, "position": 170 * (number - number % 2), "size": 340, "tag": 0}
            step = {"action": "index", "args": of} if number % 2 else {"action": "append", "args": of | {"count": 1}}
        else:
            step = _queue_step(draw, number // 2)
        kind = draw(st.integers(0, 15))
        if kind == 0:
            step["outcome"] = draw(st.sampled_from(["unknown", "refused", "inferred"]))
        elif kind == 1:
            step["saw"] = {"end": draw(st.integers(0, 3))}
        steps.append(step)
    return steps


def _break(draw: st.DrawFn, mine: list[Row]) -> None:
    """Make one row of a trace that is no event, or no row that has a place in it."""
    row = draw(st.sampled_from(mine))
    match draw(st.sampled_from(FAULTS)):
        case "action":
            row["action"] = draw(st.sampled_from([None, "", "apend"]))
        case "argument" if row["args"]:
            row["args"] = dict(list(row["args"].items())[1:])
        case "more" | "argument":
            row["args"] = row["args"] | ({"upto": 7} if row["action"] == "open" else {"start": 7})
        case "flag":
            row |= {"action": "account", "args": {"number": 0, "sent": 2}}
        case "outcome":
            row["outcome"] = "maybe"
        case "saw":
            row["saw"] = {"no_field": 1}
        case "position":
            row["position"] = None
        case _:
            mine.append(dict(row))


def columns(rows: Sequence[Row]) -> pa.Table:
    """The rows as a flat table, a column for each argument of the spec `queue`."""
    arguments = SPECS["queue"].arguments
    flat = [
        {name: row.get(name) for name in ("trace", "position", "action", "outcome")}
        | {"saw": json.dumps(row["saw"]) if "saw" in row else None}
        | {f"args_{name}": row["args"].get(name) for name in arguments}
        for row in rows
    ]
    texts = ("trace", "action", "outcome", "saw")
    schema = pa.schema([(name, pa.string() if name in texts else pa.int64()) for name in flat[0]])
    return pa.Table.from_pylist(flat, schema=schema)


def judged_as_files(rows: Sequence[Row], unreadable: set[str], room: Path, profile: str) -> list[Row]:
    """The verdict table of a check of these events as a file, and rows for the traces that cannot be read."""
    events = sorted(
        (row for row in rows if row["trace"] not in unreadable), key=lambda row: (row["trace"], row["position"])
    )
    path = room / "events.ndjson"
    lines = [{"schema": "gapless-events", "version": 1}, *({"source": "a", "spec": "queue", **row} for row in events)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    report = check([path], profile=profile, verdicts=room / "verdicts")
    assert report.verdict != "unreadable", report.sources[0].reasons
    found = [
        {"trace": name, "verdict": "unreadable", "rule": None, "position": None, "events": count}
        for name in unreadable
        if (count := sum(row["trace"] == name for row in rows))
    ]
    table = table_in(room / "verdicts")
    return by_trace(found + [{name: row[name] for name in COLUMNS} for row in table])


def by_trace(rows: Sequence[Row]) -> list[Row]:
    """The rows in the order of their traces, without their sources and stories."""
    return sorted(({name: row[name] for name in COLUMNS} for row in rows), key=lambda row: str(row["trace"]))
