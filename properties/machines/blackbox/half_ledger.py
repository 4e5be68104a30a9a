"""The ledger of transactions from outside: halves that were begun, requests about them, and answers.

A half's message is an entry of the `ClientLedger` that counts as never begun, until a commit of it is: a consumer that
sees it before that has seen a half. A half is *undecided* while no answer and no queue tells otherwise; a rollback that
was not acknowledged as durable may be undone by the end of the process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gapless.properties.machines.blackbox.client_ledger import NEVER, ClientLedger, Fate, SentEntry
from gapless.properties.machines.blackbox.subject_process import SentBody
from gapless.properties.machines.mismatch import Mismatch, expect

Decision = Literal["commit", "roll_back"]


@dataclass(slots=True, eq=False)
class HalfEntry:
    """A message that is sent in a transaction.

    `intent`: what its producer wants, when it is asked back too · `token`: by which it is decided · `fate`: whether the
    half is there · `rounds`: of checks since it was begun · `busy`: calls under way that may decide it · `touched`: the
    event at which the last of them began or ended · `answer`: the answer that the subject is to give about it.
    """

    message: SentEntry
    intent: Decision | None
    life: int
    token: Any = None
    begun: int = NEVER
    answered: int = NEVER
    fate: Fate = "open"
    is_safe: bool = False
    rolled_back: Literal["no", "maybe", "yes", "durably"] = "no"
    rounds: int = 0
    busy: int = 0
    touched: int = -1
    decided_in: int = -1  # the life in which its decision was acknowledged
    answer: Decision | None = None

    @property
    def is_committed(self) -> bool:
        """True if its place is known: it was acknowledged, or seen."""
        return self.message.fate == "there" or self.message.number >= 0

    @property
    def may_be_committed(self) -> bool:
        """True if a commit of it began, and is not known to have failed."""
        return self.message.begun < NEVER and self.message.fate != "absent"

    def __str__(self) -> str:
        return f"the half of {self.message.sent}"


class HalfLedger:
    """All transactions of a store. `max_checks`: rounds after which a half may be set aside, 0 where none is.

    `asks_by_itself`: the store asks producers at any time.
    """

    def __init__(self, ledger: ClientLedger, max_checks: int, *, asks_by_itself: bool) -> None:
        self.ledger, self.max_checks, self.asks_by_itself = ledger, max_checks, asks_by_itself
        self.halves: list[HalfEntry] = []
        self.life = 0
        self.expiring = 0  # calls that may be at work
        self._checking = 0  # rounds that are under way

    # -- halves ------------------------------------------------------------------------------------------------------

    def ask(self, bodies: Iterable[SentBody], intents: Iterable[Decision | None]) -> list[HalfEntry]:
        """Halves are to be begun by one call."""
        entries = self.ledger.ask(bodies)
        halves = [HalfEntry(entry, intent, self.life) for entry, intent in zip(entries, intents, strict=True)]
        self.halves += halves
        return halves

    def begin(self, halves: Iterable[HalfEntry]) -> None:
        """From now on they may be there."""
        for half in halves:
            half.begun, half.rounds = self.ledger.clock, self._checking  # which may come to it

    def acknowledge(self, halves: Sequence[HalfEntry], tokens: Sequence[Any], *, safe: bool) -> None:
        """They are there, and these tokens name them. `safe`: no crash may take them."""
        expect(len(tokens) == len(halves), f"{len(tokens)} names for {len(halves)} halves")
        known = {str(half.token): half for half in self.halves if half.token is not None and half.fate == "there"}
        for half, token in zip(halves, tokens, strict=True):
            other = known.setdefault(str(token), half)
            expect(other is half, f"{half} is named {token}, and so is {other}")
            half.fate, half.token, half.is_safe = "there", token, safe or self.ledger.is_lasting
            half.answered = self.ledger.clock

    def refuse(self, halves: Iterable[HalfEntry]) -> None:
        """Mark halves as absent: they were never written, or were refused."""
        for half in halves:
            half.fate = "absent"

    # -- decisions ---------------------------------------------------------------------------------------------------

    def begin_to_decide(self, halves: Iterable[HalfEntry], decision: Decision) -> None:
        """A client asks for it; from now on it may have happened."""
        for half in halves:
            half.busy, half.touched = half.busy + 1, self.ledger.clock
            if decision == "commit":
                self._may_be_committed(half)

    def _may_be_committed(self, half: HalfEntry) -> None:
        message = half.message
        if half.rolled_back in {"yes", "durably"} or message.fate == "there" or half.may_be_committed:
            return
        message.begun, message.answered, message.fate = self.ledger.clock, NEVER, "open"
        self.ledger.queues[message.sent.queue].begun += 1

    def end_to_decide(self, halves: Iterable[HalfEntry]) -> None:
        """The call has ended."""
        for half in halves:
            half.busy, half.touched = half.busy - 1, self.ledger.clock

    def committed(self, halves: Sequence[HalfEntry], numbers: Sequence[int], *, safe: bool) -> None:
        """Acknowledged: their messages have these numbers; -1 for one that has expired since."""
        expect(len(numbers) == len(halves), f"{len(numbers)} numbers for {len(halves)} messages")
        for half, number in zip(halves, numbers, strict=True):
            expect(
                half.rolled_back not in {"yes", "durably"}, f"{half} was rolled back, and is committed as {number} now"
            )
            expect(half.may_be_committed, f"{half}: its commit was answered with {number} before, and was not there")
            if number >= 0:
                self.ledger.acknowledge([half.message], [number], safe=safe)
            else:
                gone = self.expiring > 0 or half.message.begun <= self.ledger.expirable
                expect(gone, f"{half} is committed, and nothing could expire")
            half.rolled_back, half.decided_in = "no", self.life

    def rolled_back(self, halves: Sequence[HalfEntry], *, durably: bool) -> None:
        """Acknowledged: they will never be seen; `durably`: whatever comes."""
        for half in halves:
            expect(not half.is_committed, f"{half} was committed, and is rolled back now")
            half.message.fate = "absent"
            half.rolled_back = "durably" if durably or half.rolled_back == "durably" else "yes"
            half.decided_in = self.life

    def refused(self, halves: Sequence[HalfEntry], decision: Decision, says: str) -> None:
        """It could not be done. Raises Mismatch where it could of all of them."""
        if not any(self._may_be_refused(half, decision) for half in halves):
            those = ", ".join(map(str, halves))
            raise Mismatch(f"{decision} was refused of {those}, and nothing speaks against it: {says}")

    def _may_be_refused(self, half: HalfEntry, decision: Decision) -> bool:
        if half.decided_in == self.life:
            is_again = half.is_committed == (decision == "commit")  # then the answer is that of before
            return not is_again or self._may_expire(half)
        contrary = half.rolled_back != "no" if decision == "commit" else half.may_be_committed
        is_forgotten = half.life < self.life and (half.rounds > 0 or self.asks_by_itself or half.is_committed)
        return contrary or is_forgotten or half.busy > 0 or half.rolled_back != "no" or self._may_be_gone(half)

    def doubt(self, halves: Iterable[HalfEntry], decision: Decision) -> None:
        """Mark the end of a call whose result is unknown."""
        for half in halves:
            if decision == "roll_back" and half.rolled_back == "no" and not half.is_committed:
                half.rolled_back = "maybe"

    def _may_be_gone(self, half: HalfEntry) -> bool:
        """True if it may be absent, have expired, or be set aside."""
        expired, spent = self._may_expire(half), 0 < self.max_checks <= half.rounds
        return half.fate != "there" or expired or spent

    def _may_expire(self, half: HalfEntry) -> bool:
        return self.expiring > 0 or half.begun <= self.ledger.expirable

    # -- checks ------------------------------------------------------------------------------------------------------

    def decided(self, answers: Mapping[str, Decision]) -> None:
        """The subject knows what to answer about these, by their names; a store that asks may begin at once."""
        for half in self.halves:
            half.answer = answers.get(half.message.sent.name)
            if self.asks_by_itself:
                self._may_be_answered(half)

    def begin_to_check(self) -> list[HalfEntry]:
        """Begin a round of checks. Returns the halves that it is to decide, unless another call does meanwhile."""
        self._checking += 1
        open_ = [half for half in self.halves if self._is_to_be_decided(half)]
        for half in self.halves:
            if half.begun < NEVER:
                half.rounds += 1
                self._may_be_answered(half)
        return open_

    def _is_to_be_decided(self, half: HalfEntry) -> bool:
        contrary = half.rolled_back != "no" if half.answer == "commit" else half.may_be_committed
        return half.answer is not None and not (contrary or half.is_committed or half.busy or self._may_be_gone(half))

    def _may_be_answered(self, half: HalfEntry) -> None:
        """Its producer may be asked from now on."""
        if half.answer == "commit":
            self._may_be_committed(half)
        elif half.answer is not None:
            self.doubt([half], half.answer)

    def end_to_check(self) -> None:
        """The call has ended."""
        self._checking -= 1

    def checked(self, since: int, halves: Iterable[HalfEntry]) -> int:
        """A round is over that began at event `since`. Returns how many of these `halves` it has decided for sure."""
        decided = [half for half in halves if not half.busy and half.touched < since]
        for half in decided:
            if half.answer == "commit":
                self.ledger.know(half.message, safe=False)
            else:
                self.rolled_back([half], durably=False)
                half.decided_in = -1  # it has another name now, and the old one may be forgotten
        return len(decided)

    def undecided(self) -> list[HalfEntry]:
        """Those that are there and undecided for sure."""
        return [
            half
            for half in self.halves
            if half.rolled_back == "no" and not half.busy and not half.may_be_committed and not self._may_be_gone(half)
        ]

    def require_count(self, count: int) -> None:
        """The store was just opened and all queues were read: so many are undecided. Raises Mismatch."""
        sure = self.undecided()
        could = sum(
            half.begun < NEVER and half.fate != "absent" and half.rolled_back != "durably" and not half.is_committed
            for half in self.halves
        )
        expect(
            count >= len(sure),
            f"{count} halves are undecided, and these {len(sure)} are: {', '.join(map(str, sure[:3]))}",
        )
        expect(count <= could, f"{count} halves are undecided, and at most {could} can be")

    # -- the end of a process ----------------------------------------------------------------------------------------

    def stopped(self) -> None:
        """A clean stop: every decision is durable."""
        for half in self.halves:
            if half.rolled_back == "yes":
                half.rolled_back = "durably"

    def died(self) -> None:
        """The process is gone: what was not durable may have gone with it."""
        self.life += 1
        self._checking = self.expiring = 0
        for half in self.halves:
            half.busy, half.answer = 0, None
            if half.rolled_back == "yes":
                half.rolled_back = "maybe"
            if not half.is_safe and half.fate == "there":
                half.fate = "open"

    def flushed(self, since: int) -> None:
        """Halves that were there by event `since` are safe."""
        for half in self.halves:
            half.is_safe |= half.fate == "there" and half.answered <= since
