"""What the implementation's state means: for each spec, the abstraction function to a state of the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, cast

import immutables

from gapless.impl.dispatch.dispatch import Dispatch
from gapless.impl.files.queues import ConsumeQueue
from gapless.impl.records.record import MAGIC_BLANK, Record, tag_code
from gapless.impl.store.core import Core
from gapless.spec import dispatch as dispatch_spec
from gapless.spec import log as log_spec
from gapless.spec import queue as queue_spec
from gapless.spec.catalog import SPECS
from gapless.spec.language import Map, Number, Position, replace

V = TypeVar("V", bound=int)


def log(core: Core) -> log_spec.State:
    """The commit log. The file being written is the one in which its end lies."""
    found = core.log
    return log_spec.State(
        file_size=found.file_size,
        start=Position(found.start),
        base=Position(found.end - found.end % found.file_size),
        end=Position(found.end),
        flushed=Position(found.flushed),
        acknowledged=Position(core.acknowledged),
        clock=found.newest,
        newest=found.newest,
    )


def queue(core: Core, found: ConsumeQueue) -> queue_spec.State:
    """One queue: messages as a walk through the log finds them, entries as readers see them."""
    messages: dict[Number, Record] = {}
    for record in records(core):
        if (record.topic, record.queue) == (found.topic, found.id):
            if not record.number:
                messages.clear()  # the topic was deleted and created again
            messages[Number(record.number)] = record
    entries = dict(enumerate(found.entries(found.first, found.committed).tolist(), found.first))
    return queue_spec.State(
        start=Position(core.log.start),
        first=Number(found.first),
        indexed=Number(found.committed),
        end=Number(found.next),
        positions=_map({number: Position(record.position) for number, record in messages.items()}),
        sizes=_map({number: record.size for number, record in messages.items()}),
        tags=_map({number: tag_code(record.tag) for number, record in messages.items()}),
        entry_positions=_map({Number(number): Position(entry[0]) for number, entry in entries.items()}),
        entry_sizes=_map({Number(number): entry[1] for number, entry in entries.items()}),
        entry_tags=_map({Number(number): entry[2] for number, entry in entries.items()}),
    )


def dispatch(found: Dispatch, built: ConsumeQueue, model: dispatch_spec.State) -> dispatch_spec.State:
    """Dispatch of one queue.

    A worker took and wrote every visible entry; dispatch knows which later ones it took and wrote. A worker that is
    alone at a queue takes its numbers one by one, and tells dispatch when all are written. What only a history knows
    (`lives`, `start`, and who came last where workers may overlap) is the model's.
    """
    visible = range(model.start, built.committed)
    written, taken = found.written(built), found.taken(built)
    at = model.at
    if not model.overlap:
        at = Number(min((number for number in taken if number not in written), default=dispatch_spec.NOBODY))
        taken = [number for number in taken if number in written or number == at]
    bits = _ones(visible, written)
    return dispatch_spec.State(
        lives=model.lives,
        overlap=model.overlap,
        start=model.start,
        flushed=Number(built.flushed),
        committed=Number(built.committed),
        scanned=Number(built.scanned),
        at=at,
        taken=_ones(visible, taken),
        bits=bits,
        written=bits,
    )


def _ones(*numbers: Sequence[int]) -> Map[Number, int]:
    return Map(0, immutables.Map({Number(number): 1 for some in numbers for number in some}))


def without_expired(s: queue_spec.State) -> queue_spec.State:
    """A queue without what has expired: the implementation may forget that."""
    maps = {name: getattr(s, name).entries.items() for name in SPECS["queue"].maps}
    left: dict[str, Any] = {name: _map({n: v for n, v in some if n >= s.first}) for name, some in maps.items()}
    return replace(s, **left)


def records(core: Core) -> Iterator[Record]:
    """Every record of the log, from its start to its end. Raises Refused where no record begins."""
    at = core.log.start
    while at < core.log.end:
        data, base = core.log.view(at)
        if data[at - base + 4 : at - base + 8].tobytes() == MAGIC_BLANK.to_bytes(4, "big"):
            at = base + core.log.file_size
            continue
        record = core.log.at(at)
        yield record
        at += record.size


def _map(entries: dict[Number, V]) -> Map[Number, V]:
    return Map(cast("V", 0), immutables.Map({number: value for number, value in entries.items() if value}))
