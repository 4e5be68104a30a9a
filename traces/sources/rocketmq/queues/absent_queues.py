"""Queues with messages in the log and without a file: their topics were deleted, or their files are lost."""

from __future__ import annotations

from pathlib import Path

from gapless.traces.problems import Unreadable, shown
from gapless.traces.report.wording import some
from gapless.traces.sources.rocketmq.blame import queues as situations
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.segments.results import Subject, name_of
from gapless.traces.sources.rocketmq.store.topics import names_and_place

NAMED = 5  # topics of which each has a sentence


class AbsentQueues:
    """Queues whose topic was deleted by all that the store's files show; the saved topics may contradict.

    A deletion takes the topic out of the saved ones. So a topic that is among them exists: it was created again after
    its deletion, or there was no deletion. Source: docs/rocketmq.md#deleted-topics.
    """

    def __init__(self, judged: StoreFindings) -> None:
        self.judged = judged
        self.found: dict[Subject, None] = {}

    def add(self, subject: Subject) -> None:
        """Adds a queue, once."""
        self.found[subject] = None

    def report(self) -> None:
        """Notes the queues of topics that do not exist any more, and doubts those of topics that do."""
        if not self.found:
            return
        topics, place = self._saved()
        several: dict[str, list[Subject]] = {}
        plain = []
        for subject in self.found:
            if subject[0] in topics and not self._is_of_a_life_before(subject):
                several.setdefault(subject[0], []).append(subject)
            else:
                plain.append(name_of(subject))
        for topic, queues in list(several.items())[:NAMED]:
            kept = any(self.judged.store.queues.get(queue) for queue in self.judged.queues if queue[0] == topic)
            self.judged.blame(
                situations.NO_FILE if kept else situations.NO_FOLDER, topic=shown(topic), place=place,
                messages=sum(self.judged.queues[queue].messages for queue in queues), count=len(queues),
                names=some([name_of(queue) for queue in queues]),
            )  # fmt: skip
        more = list(several)[NAMED:]
        self.judged.blame(situations.MORE_WITHOUT_FILES, count=len(more), names=some(more))
        self.judged.blame(situations.DELETED, count=len(plain), names=some(plain))

    def _saved(self) -> tuple[frozenset[str], str]:
        """Returns the names of the saved topics and their file; none where they cannot be read."""
        try:
            return names_and_place(Path(self.judged.store.path, "config"))
        except (Unreadable, OSError):
            return frozenset(), ""

    def _is_of_a_life_before(self, subject: Subject) -> bool:
        """True if another queue of the topic shows that it was created again behind the queue's last message."""
        last = self.judged.queues[subject].last
        return any(
            run.restarted and run.recreated_at > last
            for other, run in self.judged.queues.items()
            if other[0] == subject[0]
        )
