"""The extensions of queues: their files, and the units that workers refused."""

from __future__ import annotations

import numpy as np

from gapless.spec.catalog import SPECS
from gapless.traces.judging.building import STEPS
from gapless.traces.options import Options
from gapless.traces.replay.exact import Event, replay
from gapless.traces.sources.rocketmq.blame.situation import switch
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.layouts.extension.blame import NOT_WHOLE
from gapless.traces.sources.rocketmq.layouts.extension.worker import ReplayedUnits
from gapless.traces.sources.rocketmq.layouts.layout import JoinSide, LayoutJudge, without
from gapless.traces.sources.rocketmq.queues.extension_units import AT_ONCE, RefusedUnit, unit_file
from gapless.traces.sources.rocketmq.segments.results import Segment, name_of
from gapless.traces.sources.rocketmq.store.files import Queue, born_with, queue_file_size, read_exactly
from gapless.traces.sources.rocketmq.store.selection import includes_queue
from gapless.traces.sources.rocketmq.store.settings import length_set

NAME = "extension"
EXTENSION = STEPS["extension"]


class ExtensionJudge(LayoutJudge):
    """Judges the extensions of one store's queues."""

    def __init__(self, judged: StoreFindings, options: Options) -> None:
        super().__init__(judged, options)
        self.bad: dict[Queue, RefusedUnit] = {}

    def add(self, segment: Segment) -> None:
        """Counts the units that a worker accepted, and remembers the first refused one of each queue."""
        found: ReplayedUnits | None = segment.layouts.get(NAME)
        if found is not None:
            self.judged.cover("extension", {"find_unit": found.accepted})
            for bad in found.refused:
                self.bad.setdefault(bad.queue, bad)

    def settle(self) -> None:
        """Reports departures after the log's end is known."""
        self._files()
        for queue, bad in sorted(self.bad.items()):
            run = self.judged.queues.get(queue)
            judged = run is not None and not run.departs and run.recreated_at <= bad.position < self.judged.end
            behind = switch(on=judged and self._ends_before(queue, bad.offset))
            if judged and self.judged.judges(NOT_WHOLE, behind, queue=name_of(queue), position=bad.position):
                self._replay(queue, bad.event, bad.position, bad.offset)
            else:
                self.judged.unread[queue] = bad.position

    def _ends_before(self, queue: Queue, offset: int) -> bool:
        """True if nothing is written in a queue's extension from an offset on: it was copied before."""
        for file in self.store.extension.get(queue, ()):
            for low in range(max(offset - file.base, 0), file.length, AT_ONCE):
                data = np.zeros(min(AT_ONCE, file.length - low), np.uint8)
                read_exactly(unit_file(self.store, queue, file), low, data.data)
                if data.any():
                    return False
        return True

    def _files(self) -> None:
        """Judges the files of every queue with messages; the next start deletes an empty last one."""
        wanted = length_set(self.store.settings, "mappedFileSizeConsumeQueueExt")
        others = queue_file_size(self.store.extension, wanted, 1)
        for queue, files in sorted(self.store.extension.items()):
            full = born_with(files, others)
            run = self.judged.queues.get(queue)
            if not full or not files or run is None or not includes_queue(self.options, *queue):
                continue
            for file in files if files[-1].length else files[:-1]:
                found = EXTENSION.find_file(length=file.length, full=full)
                self.judged.joint(self.store.start, "extension", name_of(queue), [found])
                if not self._replay(queue, found, run.began, file.base):
                    break

    def _replay(self, queue: Queue, event: Event, position: int, offset: int) -> bool:
        """Replays one step; True if it was accepted. `offset`: the place in the extension."""
        initial = SPECS["extension"].initial
        outcome = replay("extension", initial, [event], profile=self.options.profile, ignored=self.options.ignored)
        self.judged.cover("extension", outcome.covered)
        if outcome.departure:
            self.judged.report(name_of(queue), position, outcome.departure, str(offset))
        return outcome.departure is None


LAYOUT = JoinSide(
    ExtensionJudge,
    not_exercised=without("extension.find_unit", "extension: no entry names a unit in consumequeue_ext/"),
)
