"""What clients ask of one process, and what they are answered, held against the `ClientLedger` answer by answer."""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict, deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapless.properties.machines.blackbox.ledger import ClientLedger, FoundMessage, SentEntry
from gapless.properties.machines.blackbox.subject_process import Answer, SubjectCall, SubjectProcess
from gapless.properties.machines.blackbox.workload import LifePlanner, PlannedCall
from gapless.properties.machines.mismatch import Mismatch, expect

AT_ONCE = 256  # messages that are read by one call, when all are
SOON = 20  # seconds within which consumers see what was acknowledged


@dataclass(slots=True)
class PendingCall:
    """A call that was not answered yet.

    `number`: what it asks for · `begun`: the event after which it was · `visible`: what its queue's was then.
    """

    call: SubjectCall
    plan: PlannedCall
    entries: list[SentEntry]
    number: int = 0
    begun: int = -1
    visible: int = 0


class Conversation:
    """With one process. `limited`, `interrupted`: causes of errors · `children`: descriptors of what it forked."""

    def __init__(
        self,
        process: SubjectProcess,
        ledger: ClientLedger,
        planner: LifePlanner,
        counts: Counter[str],
        *,
        limited: bool,
    ) -> None:
        self.process, self.ledger, self.planner, self.counts = process, ledger, planner, counts
        self.chance: random.Random = planner.chance
        self.limited, self.interrupted = limited, False
        self.children: list[int] = []
        self.calls: defaultdict[int, deque[PendingCall]] = defaultdict(deque)
        self.was_forking = False  # when it died: nobody knows of that child, and it may not have begun yet
        self._expires_on = False  # an interrupted `expire` may still be at work
        ledger.is_lasting = process.keeps == "acknowledged"

    @property
    def pending(self) -> int:
        """Calls that wait for their answers."""
        return sum(map(len, self.calls.values()))

    @property
    def needed(self) -> str:
        """What is waited for."""
        return ", ".join(sorted({calls[0].plan.verb for calls in self.calls.values() if calls}))

    # -- asking ------------------------------------------------------------------------------------------------------

    def send(self, plan: PlannedCall) -> None:
        """A client asks; it has begun if that is its only call."""
        entries, calls = self.ledger.ask(plan.bodies), self.calls[plan.client]
        known = self.ledger.queues[plan.queue]
        first = min(known.places, default=0)
        number = self.chance.randint(first, max(first, len(known.places) + 3))
        arguments: dict[str, object] = {"topic": plan.queue[0], "queue": plan.queue[1]}
        if plan.verb == "append":
            arguments = {"messages": [[*body.queue, body.name, body.size] for body in plan.bodies]}
        elif plan.verb == "read":
            arguments |= {"number": number, "count": self.chance.choice((1, 32, 500))}
        elif plan.verb == "wait":
            number = max(known.places, default=-1)
            if number < 0:
                return
            arguments |= {"number": number, "timeout": SOON}
        elif plan.verb in {"flush", "expire"}:
            arguments = {}
        call = self.process.send(plan.client, plan.verb, **arguments)
        calls.append(PendingCall(call, plan, entries, number))
        if len(calls) == 1:
            self._begin(calls[0])

    def _begin(self, pending: PendingCall) -> None:
        pending.begun, pending.visible = self.ledger.clock, self.ledger.queues[pending.plan.queue].visible
        self.ledger.begin(pending.entries)

    # -- answers -----------------------------------------------------------------------------------------------------

    def answered(self, answer: Answer) -> None:
        """Hold an answer against what is known."""
        found = next((c for c in self.calls.values() if c and c[0].call.number == answer.get("id")), None)
        if found is None:
            raise Mismatch(f"nobody waits for this answer, or one before it was left out: {answer}")
        self.ledger.tick()
        pending = found.popleft()
        self._understand(pending, answer)
        if found:
            self._begin(found[0])

    def _understand(self, pending: PendingCall, answer: Answer) -> None:
        error = answer.get("error")
        if error is not None:
            self._require_cause(pending, answer)
            self.count_interrupted(answer)
            self._understand_error(pending, answer)
            return
        match pending.plan.verb:
            case "append":
                self.ledger.acknowledge(pending.entries, answer["ok"], safe=self.planner.synchronous)
                self.counts["acknowledged messages"] += len(pending.entries)
            case "flush":
                self.ledger.flushed(pending.begun)
            case "expire":
                self.ledger.expired(self.ledger.clock)
            case "read":
                rows = [FoundMessage(*row) for row in answer["ok"]]
                queue = pending.plan.queue
                self.ledger.see(queue, pending.number, rows, safe=self.planner.synchronous)
            case "range":
                self._understand_range(pending, *answer["ok"])
            case "wait":
                seen = self.ledger.queues[pending.plan.queue]
                expect(answer["ok"] or self.limited, f"consumers of {pending.plan.queue} do not see {pending.number}")
                seen.visible = max(seen.visible, pending.number + 1) if answer["ok"] else seen.visible
            case "fork":
                self._understand_fork(answer["ok"])

    def _understand_error(self, pending: PendingCall, answer: Answer) -> None:
        """What an error says of the messages of an append, or that files may go on expiring."""
        match pending.plan.verb:
            case "append" if answer["error"] == "refused" or "kept" in answer:
                self.ledger.keep_first(pending.entries, answer.get("kept", 0), safe=False)
            case "append":
                self.ledger.leave_open(pending.entries, answered=True)
            case "expire":
                self.ledger.expired(self.ledger.clock)
                self._expires_on = True

    def _understand_range(self, pending: PendingCall, low: int, high: int) -> None:
        known = self.ledger.queues[pending.plan.queue]
        what = f"{pending.plan.queue}: {low} to {high} are told to be there"
        expect(0 <= low <= high, what)
        expect(high <= known.begun, f"{what}, and {known.begun} messages were sent")
        expect(pending.visible <= high, f"{what}, and consumers saw all below {pending.visible} before")

    def _understand_fork(self, told: dict[str, object]) -> None:
        outcomes = told["outcomes"]
        expect(isinstance(outcomes, dict) and outcomes, f"the forked child tells nothing: {told}")
        assert isinstance(outcomes, dict)  # noqa: S101 - for mypy
        done = [verb for verb, outcome in outcomes.items() if outcome == "done" and verb != "close"]
        with suppress(ProcessLookupError):
            self.children.append(os.pidfd_open(int(str(told["pid"]))))
        expect(not done, f"a forked child could {', '.join(done)}")

    def _require_cause(self, pending: PendingCall, answer: Answer) -> None:
        """An error needs a cause that we know of. Raises Mismatch."""
        error, verb = answer["error"], pending.plan.verb
        causes = {
            "interrupted": self.interrupted and pending.plan.client == 0,
            "full": self.limited,
            "failed": self.limited,
            "refused": (verb == "append" and not self.planner.is_acceptable(pending.plan.bodies))
            or verb == "read",  # beyond the end, or expired
        }
        expect(causes.get(error, False), f"{verb} failed without a cause: {answer}")

    def count_interrupted(self, answer: Answer) -> None:
        """Not every SIGINT comes while a call is under way."""
        self.counts["interrupted calls"] += answer.get("error") == "interrupted"

    # -- beginning and end -------------------------------------------------------------------------------------------

    def ask_to_open(self, folder: Path) -> None:
        """The answer comes later."""
        self.process.send(0, "open", folder=str(folder), settings=self.planner.settings)

    def find_all(self) -> None:
        """The store was opened: every message that is in it is read, and held against the ledger."""
        self.ledger.tick()
        named = {(topic, queue) for topic, queue in self._asked("queues")}
        for queue in sorted(named | set(self.ledger.queues)):
            low, high = self._asked("range", topic=queue[0], queue=queue[1])
            rows: list[FoundMessage] = []
            while low + len(rows) < high:
                read = self._asked("read", topic=queue[0], queue=queue[1], number=low + len(rows), count=AT_ONCE)
                expect(read, f"{queue[0]}/{queue[1]} has {low} to {high}, and nothing at {low + len(rows)}")
                rows += [FoundMessage(*row) for row in read]
            self.ledger.find(queue, low, high, rows)
            self.counts["messages found"] += len(rows)
        self.ledger.settle()

    def _asked(self, verb: str, **arguments: object) -> Any:
        answer = self.process.ask(verb, **arguments)
        expect("ok" in answer, f"{verb} of a store that was just opened: {answer}")
        return answer["ok"]

    def end(self) -> None:
        """The process is gone: of each client, one call at most was under way."""
        self.process.release()
        self.ledger.tick()
        for calls in self.calls.values():
            for number, pending in enumerate(calls):
                if number:
                    self.ledger.never_begun(pending.entries)
                elif pending.entries:
                    self.ledger.leave_open(pending.entries, answered=False)
                self._expires_on |= number == 0 and pending.plan.verb == "expire"
                self.was_forking |= number == 0 and pending.plan.verb == "fork"
            calls.clear()
        if self._expires_on:
            self.ledger.expired(self.ledger.clock)
            self._expires_on = False
