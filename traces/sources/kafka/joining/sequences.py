"""The picture of a producer's sequences around a departure: small, however many batches it wrote."""

from __future__ import annotations

import numpy as np

from gapless.traces.judging.building import Events
from gapless.traces.replay.exact import Departure, named
from gapless.traces.report.pictures.sequences import BatchKind, SequencedBatch, SequenceLine
from gapless.traces.sources.kafka.judging.parts import NONE

BEFORE, BEHIND = 40, 8
"""Batches of a picture before the departure, and behind it."""
SEEN = {"append": ("sequence", "epoch"), "snapshot": ("sequence", "offset")}
"""The values that a picture shows, by step: one of them has to be read by the rule that is broken."""


def sequence_line(events: Events, low: int, bad: int, high: int, departure: Departure) -> SequenceLine | None:
    """Return the picture of a batch or a snapshot that departs; None if its rule is about something else.

    The events `low:high` are those of the producer in one part of the log, and `bad` is the one that departs.
    """
    action, args = departure.event[0], named(departure.spec, departure.event)
    read = SEEN.get(action, ())
    if not any(name.startswith(read) for name in departure.here) or args["sequence"] == NONE:
        return None
    codes = events.spec.codes
    appends = np.flatnonzero(events.action[low:high] == codes["append"]) + low
    before, behind = appends[appends < bad], appends[appends > bad][:BEHIND]
    shown = [*before[-BEFORE:].tolist(), *([bad] if action == "append" else []), *behind.tolist()]
    batches = [_batch(events, at, "sound" if at < bad else "departs" if at == bad else "later") for at in shown]
    if action == "snapshot":
        batches.append(
            SequencedBatch(
                kind="departs", epoch=args["epoch"], first=args["offset"], last=args["offset"],
                sequence=args["sequence"], last_sequence=args["sequence"],
            )
        )  # fmt: skip
    since = min(batch.first for batch in batches)
    marks = np.flatnonzero(events.action[low:high] == codes["mark"]) + low
    offsets = [events.at(int(at))[1][1] for at in marks[np.abs(marks - bad) <= BEFORE + BEHIND]]
    return SequenceLine(
        action=action,
        batches=batches,
        markers=[offset for offset in offsets if since <= offset <= max(batch.last for batch in batches)],
        expected=_expected(departure, args["epoch"]) if action == "append" else None,
        left_out=max(len(before) - BEFORE, 0),
    )


def _batch(events: Events, at: int, kind: BatchKind) -> SequencedBatch:
    args = named(events.spec, events.at(at))
    delta = args["last"] - args["first"]
    return SequencedBatch(
        kind=kind, epoch=args["epoch"], first=args["first"], last=args["last"], sequence=args["sequence"],
        last_sequence=args["sequence"] + delta,
    )  # fmt: skip


def _expected(departure: Departure, epoch: int) -> int | None:
    """The sequence that comes next in an epoch; None where the epoch itself is at fault, or is not known."""
    state = departure.state
    if not state.known or epoch > state.epoch or (epoch == state.epoch and state.sequence == NONE):
        return 0
    return int(state.sequence) + 1 if epoch == state.epoch else None
