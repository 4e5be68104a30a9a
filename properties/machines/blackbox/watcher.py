"""A process that follows a store while another one writes to it, and outlives that one."""

from __future__ import annotations

import random
from pathlib import Path

from gapless.properties.machines.blackbox.client_ledger import ClientLedger, FoundMessage
from gapless.properties.machines.blackbox.subject_process import QueueName, SubjectProcess
from gapless.properties.machines.mismatch import expect

SILENCE = 0.1  # seconds without a message after which it hands out no more
ALL = 1 << 30  # messages


class Watcher:
    """A subject that views the folder. Of the queues that are known, each is followed by a client."""

    def __init__(self, process: SubjectProcess, ledger: ClientLedger) -> None:
        self._process, self._ledger = process, ledger
        self._following: dict[QueueName, int] = {}

    def begin(self, folder: Path, chance: random.Random) -> None:
        """It follows from now on. Raises Mismatch."""
        answer = self._process.ask("view", folder=str(folder))
        expect("ok" in answer, f"a second process cannot view the store: {answer}")
        for queue, known in sorted(self._ledger.queues.items()):
            if known.places:
                self._following[queue] = known.number(chance)
        for client, (queue, number) in enumerate(self._following.items()):
            self._process.send(client, "follow", queues=[[*queue, number]], count=ALL, timeout=SILENCE)

    def end(self, *, may_lack: bool) -> int:
        """The number of messages that it handed out: each once, in order. Raises Mismatch.

        `may_lack`: what it was to begin with may be gone.
        """
        count = 0
        for _ in self._following:
            answer = self._process.next_answer(needs="follow")
            if answer.get("error") == "refused" and may_lack:
                continue
            expect("ok" in answer, f"a second process cannot follow the store: {answer}")
            for topic, queue in {(row[0], row[1]) for row in answer["ok"]}:
                rows = [FoundMessage(*row[2:]) for row in answer["ok"]]
                self._ledger.watch((topic, queue), self._following[topic, queue], rows)
            count += len(answer["ok"])
        return count

    def release(self) -> None:
        """The process is gone."""
        self._process.release()
