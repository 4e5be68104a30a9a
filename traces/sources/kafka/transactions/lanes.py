"""The picture of a transaction over its partitions around a departure: small, however long its trace is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gapless.traces.replay.exact import Event, named
from gapless.traces.report.pictures.lanes import FateKind, LaneItem, StepKind, TransactionLanes

BEFORE, BEHIND = 16, 4
"""Steps of a picture before the departure, and behind it."""
SPEC = "kafka_transaction"
LANES = 8
"""Partitions that have a lane."""
COORDINATOR = -1


class LaneName(NamedTuple):
    """The name of a partition; `is_read`: its markers are those of a file."""

    name: str
    is_read: bool


TABLE = LaneName("the table", is_read=True)


def lanes_of(events: Sequence[Event], bad: int, names: Sequence[LaneName], *, left_out: int) -> TransactionLanes:
    """Return the picture of some events of a trace, the one that departs among them; `names`: by number of part."""
    args = [named(SPEC, event) for event in events]
    touched = sorted({one["part"] for one in args if "part" in one})
    chosen = touched[:LANES]
    refused = args[bad].get("part", COORDINATOR)
    if refused not in (COORDINATOR, *chosen):
        chosen[-1] = refused
    lanes = {part: number for number, part in enumerate(chosen)} | {COORDINATOR: COORDINATOR}
    items = []
    for at, (event, one) in enumerate(zip(events, args, strict=True)):
        part = one.get("part", COORDINATOR)
        if part in lanes:
            fate: FateKind = "sound" if at < bad else "departs" if at == bad else "later"
            kind, says = _described(event[0], one, names[part] if part != COORDINATOR else TABLE)
            items.append(LaneItem(kind=kind, fate=fate, lane=lanes[part], at=at, says=says))
    return TransactionLanes(
        lanes=[names[part].name for part in chosen], items=items, left_out=left_out,
        lanes_left_out=len(touched) - len(chosen),
    )  # fmt: skip


ROWS = {"init": "a producer begins", "complete": "the transaction is complete", "expire": "the id is forgotten"}


def _described(action: str, args: dict[str, int], name: LaneName) -> tuple[StepKind, str]:
    """The shape of a step, and words for it."""
    kind: StepKind = "commit" if args.get("commit") else "abort"
    match action:
        case "write":
            return (
                "data",
                f"{name.name}: records at offsets {args['first']:,} to {args['last']:,}, epoch {args['epoch']}",
            )
        case "mark":
            place = f"at offset {args['offset']:,}, epoch {args['epoch']}" if name.is_read else "that no file has"
            return kind, f"{name.name}: a marker to {kind} {place}"
        case "decide":
            return kind, f"the decision to {kind}, epoch {args['epoch']}"
        case "time_out":
            return kind, f"the decision to abort what took too long, epoch {args['epoch']}"
        case "add":
            return "added", f"{name.name}: added, epoch {args['epoch']}"
        case _:
            return "row", ROWS.get(action, "the first row of the table that is left")
