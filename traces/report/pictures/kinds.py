"""The kinds of pictures: a line for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import Field

from gapless.traces.report.pictures.bitmap import Bitmap, BitmapShapes
from gapless.traces.report.pictures.entries import QueueEntries, QueueEntriesShapes
from gapless.traces.report.pictures.lanes import TransactionLanes, TransactionLanesShapes
from gapless.traces.report.pictures.sequences import SequenceLine, SequenceLineShapes
from gapless.traces.report.pictures.swimlane import Swimlane, SwimlaneShapes
from gapless.traces.report.pictures.timeline import Timeline, TimelineShapes

Picture = Annotated[
    Swimlane | Bitmap | Timeline | QueueEntries | SequenceLine | TransactionLanes, Field(discriminator="kind")
]

SHAPES: Mapping[str, Callable[[Any, str], Any]] = {
    "bitmap": BitmapShapes,
    "entries": QueueEntriesShapes,
    "lanes": TransactionLanesShapes,
    "sequences": SequenceLineShapes,
    "swimlane": SwimlaneShapes,
    "timeline": TimelineShapes,
}
"""The shapes of each kind, by its name, which is also that of its template."""
