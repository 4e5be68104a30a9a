"""Producers in a trial: their transactions, their answers to checks, and the results that they got.

They answer consistently: once it is known what becomes of a half, they say nothing else, whatever crashes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gapless.impl.records.errors import DiskFull
from gapless.impl.records.record import Record
from gapless.impl.transactions import names
from gapless.impl.transactions.settings import TransactionSettings
from gapless.impl.transactions.transactions import Transactions
from gapless.impl.workloads.workload import ClientLogWriter, Decision, Fate, PlannedSend, Result

GROUP = "billing"
SETTINGS = TransactionSettings(
    max_checks=3, check_interval=20, transaction_timeout=5, op_batch_bytes=512, op_batch_interval=10
)
"""In ms of the senders' clock, which advances by a tenth of one with each message."""
ROUNDS = SETTINGS.max_checks + 2  # of checks, after which nothing is undecided
ROLLS_BACK_DURABLY = 2  # of so many rollbacks, one is waited for


def key_prefix(seed: int, life: int) -> str:
    """The prefix of halves' keys in one life of a store: the same for the same seed, and no message's."""
    return f"{seed:08X}{(1 << 31) + life:08X}"


@dataclass
class BegunHalf:
    """A half that a producer sent. `number`, `position`: of the newest version that it knows of.

    `answered`: its half was reported written; otherwise nothing was done for it · `decided`: it has decided
    """

    send: PlannedSend
    key: str
    number: int = -1
    position: int = -1
    answered: bool = False
    decided: bool = False

    @property
    def durably(self) -> bool:
        """True if its producer waits for the rollback."""
        return self.send.time % ROLLS_BACK_DURABLY == 0

    @property
    def decision(self) -> Decision:
        """The decision of its producer, if it makes one by itself."""
        return {Fate.COMMIT: "commit", Fate.ROLL_BACK: "rollback"}.get(self.send.fate, "unknown")  # type: ignore[return-value]

    @property
    def answer(self) -> Decision:
        """The answer of its producer when it is asked now. While it is at work it does not know."""
        if not self.answered:
            return "rollback"
        if self.decided:
            return self.decision
        if self.send.fate is Fate.COMMIT_WHEN_ASKED:
            return "commit"
        return "rollback" if self.send.fate is Fate.ROLL_BACK_WHEN_ASKED else "unknown"


class Producers:
    """The producers of one trial. `begun`: their halves, by key."""

    def __init__(self, client: ClientLogWriter) -> None:
        self.begun: dict[str, BegunHalf] = {}
        self._client = client

    def begin(self, sends: Sequence[PlannedSend], tx: Transactions) -> list[BegunHalf]:
        """Halves are sent, and get the store's next keys."""
        halves = [BegunHalf(send, tx.next_key(ahead)) for ahead, send in enumerate(sends)]
        self.begun |= {half.key: half for half in halves}
        return halves

    def not_begun(self, halves: Sequence[BegunHalf], error: BaseException) -> None:
        """They were sent together, and this was raised."""
        refused = isinstance(error, DiskFull) and len(halves) == 1  # of many, some may have found room
        for half in halves:
            self.answered(half, "fail" if refused else "unknown")

    def answered(self, half: BegunHalf, result: Result, number: int | None = None, position: int | None = None) -> None:
        """Note the answer to sending it."""
        if result == "ok" and number is not None and position is not None:
            half.answered, half.number, half.position = True, number, position
        self._client.tell(half.send, result, number, position, half_key=half.key)

    def ended(self, half: BegunHalf, result: Result) -> None:
        """Note the answer to its decision. A refused decision is made again."""
        self._client.tell_end(half.key, half.number, half.position, half.decision, result)

    def ask(self, record: Record) -> bool | None:
        """The store asks about a version of a half: True to commit, False to roll back, None if unknown."""
        half = self.begun[record.properties[names.KEY]]
        half.number, half.position = record.number, record.position
        self._client.tell_check(half.key, record.number, record.position, int(record.properties[names.CHECK_TIMES]))
        self._client.tell_end(half.key, record.number, record.position, half.answer, "unknown", asked=True)
        return {"commit": True, "rollback": False}.get(half.answer)
