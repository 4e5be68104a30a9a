"""Exports the event of a file of tokens."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gapless.spec.catalog import SPECS
from gapless.traces.judging.building import STEPS, Events
from gapless.traces.sources.rocketmq.layouts.layout import ExportedEvents, LayoutExporter

SPEC = SPECS["permits"]


class TokenExporter(LayoutExporter):
    """Exports one event."""

    def at_end(self) -> Iterator[ExportedEvents]:
        """Yields it."""
        opened = Events.of(SPEC, [STEPS[SPEC.name].open(permits=7, timeout=0)])
        yield ExportedEvents(opened, ["tokens/heap"], None, np.array([self.judged.end]))


EXPORTER = TokenExporter
