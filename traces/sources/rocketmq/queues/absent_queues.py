"""Queues with messages in the log and without a file: their topics were deleted, or their files are lost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gapless.traces.problems import Unreadable, shown
from gapless.traces.report.wording import plural, some
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
            self.judged.doubt(self._sentence(topic, queues, place))
        if len(several) > NAMED:
            self.judged.doubt(f"so {'is' if len(several) == NAMED + 1 else 'are'} {some(list(several)[NAMED:])}")
        if plain:
            self._note(plain)

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

    def _sentence(self, topic: str, queues: Sequence[Subject], place: str) -> str:
        messages = plural(sum(self.judged.queues[queue].messages for queue in queues), "message")
        again = "deleted and created again and got no message since"
        if not any(self.judged.store.queues.get(queue) for queue in self.judged.queues if queue[0] == topic):
            return (
                f"{shown(topic)} is in {place}, has {messages} in the log and no queue folder: it was {again}, or its "
                "queues are lost"
            )
        one = len(queues) == 1
        return (
            f"{shown(topic)} is in {place}, and has {messages} in the log of {'a queue' if one else 'queues'} without "
            f"a file ({some([name_of(queue) for queue in queues])}): the topic was deleted and created again and "
            f"{'the queue' if one else 'these queues'} got no message since, or {'it is' if one else 'they are'} lost"
        )

    def _note(self, names: Sequence[str]) -> None:
        several = len(names) > 1
        self.judged.note(
            f"{len(names):,} queue{'s have' if several else ' has'} messages in the log and no file: "
            f"{'their' if several else 'its'} topic{'s were' if several else ' was'} deleted, and perhaps "
            f"created again, or {'their' if several else 'its'} files are lost ({some(names)})"
        )
