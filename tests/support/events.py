"""Events as strategies, as lines and as rows, to compare different readers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from gapless.spec.catalog import SPECS
from gapless.traces.events import schema
from gapless.traces.events.encoded_batch import EncodedBatch
from gapless.traces.events.event import OUTCOMES, NoEvent
from gapless.traces.events.schema import Event
from gapless.traces.problems import Unreadable

INT64 = st.integers(-(2**63), 2**63 - 1)


@st.composite
def an_event(draw: st.DrawFn) -> Event:
    spec, action = draw(st.sampled_from(schema.STEPS))
    fields = st.sampled_from(SPECS[spec].scalars)
    return Event(
        source=draw(st.text(max_size=5)),
        spec=spec,
        trace=draw(st.text(max_size=20)),
        position=draw(INT64),
        action=action,
        args={
            name: draw(st.integers(0, 1) if name in SPECS[spec].flags[action] else INT64)
            for name in SPECS[spec].parameters[action]
        },
        outcome=draw(st.sampled_from(OUTCOMES)),
        saw=draw(st.none() | st.dictionaries(fields, INT64, max_size=3)),
    )


def an_append(**changed: Any) -> dict[str, Any]:
    """An event of a queue as its line has it."""
    args = {"number": 17, "count": 1, "position": 40112, "size": 340, "tag": 0}
    event = {"source": "a", "spec": "queue", "trace": "T/0", "position": 1, "action": "append", "args": args}
    return event | changed


def result_of(read: Callable[[], Any]) -> Any:
    """Return the result of a reader, or its error: equal readers agree in both."""
    try:
        return read()
    except NoEvent as wrong:
        return wrong.row, wrong.what
    except (ValueError, Unreadable, pa.ArrowException) as error:
        return type(error), str(error)


def in_rows(coded: Any) -> Any:
    """Events in codes as rows that can be compared; what reading says of them, where they are none."""
    if not isinstance(coded, EncodedBatch):
        return coded
    saw = [None] * len(coded) if coded.saw is None else coded.saw.to_pylist()
    rows = zip(
        coded.step.tolist(),
        coded.trace.dictionary_decode().to_pylist(),
        coded.position.tolist(),
        coded.outcome.tolist(),
        saw,
        strict=True,
    )
    return [
        {
            "spec": schema.STEPS[step][0],
            "trace": trace,
            "position": position,
            "action": schema.STEPS[step][1],
            "args": {
                name: int(coded.args[name][at])
                for name in SPECS[schema.STEPS[step][0]].parameters[schema.STEPS[step][1]]
            },
            "outcome": OUTCOMES[outcome],
            "saw": seen,
        }
        for at, (step, trace, position, outcome, seen) in enumerate(rows)
    ]


def in_rows_of(batch: Any) -> Any:
    """The same of a batch."""
    if not isinstance(batch, pa.RecordBatch):
        return batch
    rows = []
    for row in batch.to_pylist():
        del row["source"]
        row["args"] = {name: row["args"][name] for name in SPECS[row["spec"]].parameters[row["action"]]}
        rows.append(row)
    return rows
