"""The life of the one producer that was asked for, step by step."""

from __future__ import annotations

from collections.abc import Iterable

from gapless.traces.options import Options
from gapless.traces.replay.exact import Event, life
from gapless.traces.sources.kafka.joining.reporter import Reporter
from gapless.traces.sources.kafka.joining.states import some
from gapless.traces.sources.kafka.judging.part_results import PartResult

STEPS = 60
"""Steps that are shown; more are counted."""


class ProducerLife:
    """Gathers the first steps of a producer while its partition is judged."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.events: list[Event] = []
        self.count = 0

    def add(self, reporter: Reporter, result: PartResult, joints: Iterable[tuple[str, str, int, Event]]) -> None:
        """Adds the steps before a part, such as `open`, and those in it."""
        between = [event for spec, _, _, event in joints if spec == "producer"]
        within = int(result.producers.lengths.sum())
        self.count += len(between) + within
        if len(self.events) < STEPS:
            self.events += between
            self.events += some(reporter.read(result).producers.events, 0, within) if within else ()

    def lines(self) -> list[str]:
        """Returns a line for each step, and the number of those that are left out."""
        shown = self.events[:STEPS]
        found = life("producer", shown, profile=self.options.profile, ignored=self.options.ignored)
        return [*found, f"     and {self.count - len(shown):,} more steps"] if len(shown) < self.count else found
