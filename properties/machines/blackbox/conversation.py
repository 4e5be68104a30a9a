"""Requests of clients to one process, and its answers, each checked by the `ClientLedger`."""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict, deque
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from gapless.properties.machines.blackbox.client_ledger import ClientLedger, FoundMessage, SentEntry
from gapless.properties.machines.blackbox.half_ledger import Decision, HalfEntry, HalfLedger
from gapless.properties.machines.blackbox.subject_process import Answer, QueueName, SubjectCall, SubjectProcess
from gapless.properties.machines.blackbox.workload import LifePlanner, PlannedCall
from gapless.properties.machines.mismatch import Mismatch, expect

AT_ONCE = 256  # messages that are read by one call, when all are
DECISIONS = ("commit", "roll_back")
CONTRARY = 0.1  # of the decisions are not what the producer wanted, or were made before
CONTINUED = 0.8  # of the queues that a client follows are those that it has followed, from where it is
FOLLOWED = (1, 20, 200)  # messages that a follower is to hand out
SILENCE = 0.01  # seconds without a message after which it hands out no more
SOON = 20  # seconds within which consumers see what was acknowledged


UNSENT = SubjectCall(-1, 0, "", {})


@dataclass(slots=True)
class PendingCall:
    """A call that was not answered yet.

    `number`: what it asks for · `begun`: the event after which it was · `visible`: what its queue's was then ·
    `halves`: which it begins, or decides, or a round of checks is to decide · `durably`: whether a rollback is to be ·
    `following`: the numbers from which it follows queues · `seen`: below which consumers had seen these then ·
    `count`: how many messages it is to hand out.
    """

    call: SubjectCall
    plan: PlannedCall
    entries: list[SentEntry]
    number: int = 0
    begun: int = -1
    visible: int = 0
    halves: list[HalfEntry] = field(default_factory=list)
    durably: bool = False
    following: dict[QueueName, int] = field(default_factory=dict)
    seen: dict[QueueName, int] = field(default_factory=dict)
    count: int = 0

    @property
    def decision(self) -> Decision | None:
        """The decision to make."""
        return cast("Decision", self.plan.verb) if self.plan.verb in DECISIONS else None


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
        halves: HalfLedger,
    ) -> None:
        self.process, self.ledger, self.planner, self.counts = process, ledger, planner, counts
        self.halves = halves
        self.chance: random.Random = planner.chance
        self.limited, self.interrupted = limited, False
        self.children: list[int] = []
        self.calls: defaultdict[int, deque[PendingCall]] = defaultdict(deque)
        self.answers: dict[str, Decision] = {}  # what the subject knows of halves, by their messages' names
        self.was_forking = False  # when it died: that child is unknown, and it may not have begun yet
        self._expires_on = False  # an interrupted `expire` may still be at work
        ledger.is_lasting = process.keeps == "acknowledged"

    @property
    def pending(self) -> int:
        """Calls that wait for their answers."""
        return sum(map(len, self.calls.values()))

    @property
    def needed(self) -> str:
        """The call that is waited for."""
        return ", ".join(sorted({calls[0].plan.verb for calls in self.calls.values() if calls}))

    # -- asking ------------------------------------------------------------------------------------------------------

    def send(self, plan: PlannedCall) -> None:
        """A client asks; it has begun if that is its only call."""
        pending = PendingCall(UNSENT, plan, [])
        arguments = self._arguments(pending)
        if arguments is None:
            return
        pending.call = self.process.send(plan.client, plan.verb, **arguments)
        calls = self.calls[plan.client]
        calls.append(pending)
        if len(calls) == 1:
            self._begin(calls[0])

    def _arguments(self, pending: PendingCall) -> dict[str, object] | None:
        """The next request; None if there is none."""
        plan = pending.plan
        if pending.decision or plan.verb == "follow":
            return self._decision(pending, pending.decision) if pending.decision else self._following(pending)
        known = self.ledger.queues[plan.queue]
        first = min(known.places, default=0)
        pending.number = self.chance.randint(first, max(first, len(known.places) + 3))
        queue: dict[str, object] = {"topic": plan.queue[0], "queue": plan.queue[1]}
        messages = {"messages": [[*body.queue, body.name, body.size] for body in plan.bodies]}
        match plan.verb:
            case "append":
                pending.entries = self.ledger.ask(plan.bodies)
                return {**messages}
            case "begin":
                pending.halves = self.halves.ask(plan.bodies, [self.planner.intent() for _ in plan.bodies])
                return {**messages}
            case "read":
                return queue | {"number": pending.number, "count": self.chance.choice((1, 32, 500))}
            case "wait":
                pending.number = max(known.places, default=-1)
                return queue | {"number": pending.number, "timeout": SOON} if pending.number >= 0 else None
        return {} if plan.verb in {"flush", "expire", "check"} else queue

    def _following(self, pending: PendingCall) -> dict[str, object]:
        """Queues to follow: those that the client has followed so far, or others, from any number on."""
        known = self.ledger.queues
        pending.count = self.chance.choice(FOLLOWED)
        others = self.chance.sample(sorted(known), min(len(known), self.chance.randint(0, 3)))
        chosen = {pending.plan.queue, *others}
        before = self.ledger.followers[pending.plan.client]
        for queue in sorted(chosen if self.chance.random() > CONTINUED or not before else before):
            pending.following[queue] = before[queue] if queue in before else known[queue].number(self.chance)
        queues = [[*queue, number] for queue, number in pending.following.items()]
        return {"queues": queues, "count": pending.count, "timeout": SILENCE}

    def _decision(self, pending: PendingCall, decision: Decision) -> dict[str, object] | None:
        pending.halves = self._to_decide(decision)
        pending.durably = decision == "roll_back" and self.chance.random() < 0.5
        names: dict[str, object] = {"halves": [half.token for half in pending.halves]}
        return (names | {"durably": True} if pending.durably else names) if pending.halves else None

    def _to_decide(self, decision: Decision) -> list[HalfEntry]:
        """Some halves, whose producers want that of most of them."""
        named = [half for half in self.halves.halves if half.token is not None]
        open_ = [half for half in named if half.decided_in < 0 and half.intent == decision]
        some = named if self.chance.random() < CONTRARY else open_
        count = self.chance.choices((1, self.chance.randint(2, 30)), (4, 1))[0]
        return self.chance.sample(some, min(count, len(some)))

    def _begin(self, pending: PendingCall) -> None:
        pending.begun, pending.visible = self.ledger.clock, self.ledger.queues[pending.plan.queue].visible
        pending.seen = {queue: self.ledger.queues[queue].visible for queue in pending.following}
        self.ledger.begin(pending.entries)
        if pending.plan.verb == "begin":
            self.halves.begin(pending.halves)
        elif pending.plan.verb == "expire":
            self.halves.expiring += 1
        elif pending.plan.verb == "check":
            pending.halves = self.halves.begin_to_check()
        elif pending.decision:
            self.halves.begin_to_decide(pending.halves, pending.decision)

    # -- answers -----------------------------------------------------------------------------------------------------

    def answered(self, answer: Answer) -> None:
        """Check an answer by what is known."""
        found = next((c for c in self.calls.values() if c and c[0].call.number == answer.get("id")), None)
        if found is None:
            raise Mismatch(f"nobody waits for this answer, or one before it was left out: {answer}")
        self.ledger.tick()
        pending = found.popleft()
        self._understand(pending, answer)
        if found:
            self._begin(found[0])

    def _understand(self, pending: PendingCall, answer: Answer) -> None:
        self._end_of_call(pending, answer)
        if "error" in answer:
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
                self.halves.flushed(pending.begun)
            case "expire":
                self.ledger.expired(self.ledger.clock)
            case "read":
                rows = [FoundMessage(*row) for row in answer["ok"]]
                queue = pending.plan.queue
                self.ledger.see(queue, pending.number, rows, safe=self.planner.synchronous)
            case "follow":
                self._understand_follower(pending, answer["ok"])
            case "range":
                self._understand_range(pending, *answer["ok"])
            case "wait":
                seen = self.ledger.queues[pending.plan.queue]
                expect(answer["ok"] or self.limited, f"consumers of {pending.plan.queue} do not see {pending.number}")
                seen.visible = max(seen.visible, pending.number + 1) if answer["ok"] else seen.visible
            case "fork":
                self._understand_fork(answer["ok"])
            case _:
                self._understand_transaction(pending, answer["ok"])

    def _end_of_call(self, pending: PendingCall, answer: Answer) -> None:
        """It is not under way any more, whatever came of it."""
        if pending.decision:
            self.halves.end_to_decide(pending.halves)
        if pending.plan.verb == "check":
            self.halves.end_to_check()
        if pending.plan.verb == "expire" and "error" not in answer:  # else it may go on
            self.halves.expiring -= 1

    def _understand_transaction(self, pending: PendingCall, ok: Any) -> None:
        """Note an answer about halves."""
        match pending.plan.verb:
            case "begin":
                self.halves.acknowledge(pending.halves, ok, safe=self.planner.synchronous)
                self.counts["halves"] += len(pending.halves)
            case "commit":
                self.halves.committed(pending.halves, ok, safe=self.planner.synchronous)
                self.counts["commits"] += len(pending.halves)
            case "roll_back":
                expect(ok or not pending.durably, f"a rollback was asked to be durable, and is answered with {ok}")
                self.halves.rolled_back(pending.halves, durably=ok)
                self.counts["rollbacks"] += len(pending.halves)
            case "check":
                self.counts["checked halves"] += self.halves.checked(pending.begun, pending.halves)

    def _understand_error(self, pending: PendingCall, answer: Answer) -> None:
        """Note an error about the messages of an append, or that files may continue to expire."""
        match pending.plan.verb:
            case "append" if answer["error"] == "refused" or "kept" in answer:
                self.ledger.keep_first(pending.entries, answer.get("kept", 0), safe=False)
            case "append":
                self.ledger.leave_open(pending.entries, answered=True)
            case "expire":
                self.ledger.expired(self.ledger.clock)
                self._expires_on = True
            case "follow":
                self.ledger.followers[pending.plan.client].clear()  # it begins anywhere
            case "begin" if answer["error"] == "refused":
                self.halves.refuse(pending.halves)
            case "commit" | "roll_back" if pending.decision:
                if answer["error"] == "refused":
                    self.halves.refused(pending.halves, pending.decision, answer.get("says", ""))
                else:
                    self.halves.doubt(pending.halves, pending.decision)

    def _understand_follower(self, pending: PendingCall, rows: list[list[Any]]) -> None:
        """Each message once, in order, from the number that was asked for; and all that consumers had seen before."""
        positions = self.ledger.followers[pending.plan.client] = {}
        for queue, number in pending.following.items():
            mine = [FoundMessage(*row[2:]) for row in rows if (row[0], row[1]) == queue]
            self.ledger.see(queue, number, mine, safe=self.planner.synchronous)
            positions[queue] = number + len(mine)
            expect(
                len(rows) >= pending.count or self.limited or pending.seen[queue] <= positions[queue],
                f"a follower of {queue} stops at {positions[queue]}, and consumers saw all below {pending.seen[queue]}",
            )
        handed_out = sum(positions.values()) - sum(pending.following.values())
        expect(len(rows) == handed_out, f"a follower of {sorted(positions)} hands out messages of other queues")
        expect(len(rows) <= pending.count, f"a follower hands out {len(rows)} messages, of {pending.count}")
        self.counts["followed messages"] += len(rows)

    def _understand_range(self, pending: PendingCall, low: int, high: int) -> None:
        known = self.ledger.queues[pending.plan.queue]
        what = f"{pending.plan.queue}: {low} to {high} are reported to be there"
        expect(0 <= low <= high, what)
        expect(high <= known.begun, f"{what}, and {known.begun} messages were sent")
        expect(pending.visible <= high, f"{what}, and consumers saw all below {pending.visible} before")

    def _understand_fork(self, answer: dict[str, object]) -> None:
        outcomes = answer["outcomes"]
        expect(isinstance(outcomes, dict) and outcomes, f"the forked child tells nothing: {answer}")
        assert isinstance(outcomes, dict)  # noqa: S101 - for mypy
        done = [verb for verb, outcome in outcomes.items() if outcome == "done" and verb != "close"]
        with suppress(ProcessLookupError):
            self.children.append(os.pidfd_open(int(str(answer["pid"]))))
        expect(not done, f"a forked child could {', '.join(done)}")

    def _require_cause(self, pending: PendingCall, answer: Answer) -> None:
        """An error needs a cause that we know of. Raises Mismatch."""
        error, verb = answer["error"], pending.plan.verb
        causes = {
            "interrupted": self.interrupted and pending.plan.client == 0,
            "full": self.limited,
            "failed": self.limited,
            "refused": (verb == "append" and not self.planner.is_acceptable(pending.plan.bodies))
            or verb == "read"  # beyond the end, or expired
            or (verb == "follow" and (self.ledger.expirable >= 0 or self.halves.expiring > 0))
            or verb in DECISIONS,  # then the halves have to tell why
        }
        expect(causes.get(error, False), f"{verb} failed without a cause: {answer}")

    def count_interrupted(self, answer: Answer) -> None:
        """Not every SIGINT comes while a call is under way."""
        self.counts["interrupted calls"] += answer.get("error") == "interrupted"

    # -- beginning and end -------------------------------------------------------------------------------------------

    def ask_to_open(self, folder: Path) -> None:
        """The answer comes later."""
        self.halves.decided(self.answers)
        answers = {"answers": self.answers} if self.planner.transactions else {}
        self.process.send(0, "open", folder=str(folder), settings=self.planner.settings, **answers)

    def find_all(self) -> None:
        """The store was opened: every message in it is read, and checked by the ledger."""
        self.ledger.tick()
        named = {(topic, queue) for topic, queue in self._asked("queues")}
        for queue in sorted(named | set(self.ledger.queues)):
            low, high = self._asked("range", topic=queue[0], queue=queue[1])
            rows: list[FoundMessage] = []
            while low + len(rows) < high:
                read = self._asked("read", topic=queue[0], queue=queue[1], number=low + len(rows), count=AT_ONCE)
                expect(read, f"{queue[0]}/{queue[1]} has {low} to {high}, and nothing at {low + len(rows)}")
                rows += [FoundMessage(*row) for row in read]
            if self.halves.asks_by_itself:
                del rows[high - low :]  # others are committed meanwhile
            self.ledger.find(queue, low, high, rows)
            self.counts["messages found"] += len(rows)
        self.ledger.settle()
        if self.planner.transactions:
            self.halves.decided(self.answers)
            self.halves.require_count(self._asked("undecided"))

    def decide_all(self) -> None:
        """A round of checks decides every half that is left: the subject knows all answers."""
        open_ = self.halves.begin_to_check()
        self._asked("check")
        self.halves.end_to_check()
        self.ledger.tick()
        self.counts["checked halves"] += self.halves.checked(self.ledger.clock, open_)
        left = self._asked("undecided")
        expect(left == 0, f"{left} halves are undecided, though all were asked about and answered")

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
                    if pending.plan.verb == "begin":
                        self.halves.refuse(pending.halves)
                elif pending.entries:
                    self.ledger.leave_open(pending.entries, answered=False)
                if number == 0 and pending.decision:
                    self.halves.doubt(pending.halves, pending.decision)
                self._expires_on |= number == 0 and pending.plan.verb == "expire"
                self.was_forking |= number == 0 and pending.plan.verb == "fork"
            calls.clear()
        self.halves.died()
        if self._expires_on:
            self.ledger.expired(self.ledger.clock)
            self._expires_on = False
