"""A random walk over transactions, through crashes: `transaction_pair.py` takes and judges its steps.

All that may happen either way is asked of `choose`, so that a walk is a list of choices. The power may fail at any use
of the disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from gapless.properties.reference_store.transactional.transaction_pair import PairSettings, TransactionPair
from gapless.properties.simulation.choices import Choose, one_of
from gapless.properties.simulation.simulated_disk import PowerLost, SimulatedDisk
from gapless.spec.transaction import Phase

STEPS = 40  # of one life
DECISIONS = (Phase.COMMITTED, Phase.ROLLED_BACK)


@dataclass
class TransactionWalk:
    """One store, and its lives."""

    choose: Choose
    lives: int = 4
    story: list[str] = field(default_factory=list)

    def run(self) -> TransactionWalk:
        """All lives, and rest in the end. What it raises has the story so far as a note."""
        chosen = PairSettings(
            op_bytes=(7, 20, 4096)[self.choose(3)], capacity=(3, 0, 1, 8000)[self.choose(4)],
            max_checks=1 + self.choose(3), file_size=(4096, 2048)[self.choose(2)], page=(512, 4096)[self.choose(2)],
        )  # fmt: skip
        self.pair = TransactionPair(chosen)
        try:
            self.pair.start()
            for _ in range(self.lives):
                self._live()
            self._come_to_rest()
        except Exception as error:
            error.add_note("\n".join(self.story))
            raise
        return self

    @property
    def tally(self) -> Counter[str]:
        """The events so far."""
        return self.pair.tally

    @property
    def disk(self) -> SimulatedDisk:
        """The remains of the store."""
        return self.pair.disk

    # -- lives -------------------------------------------------------------------------------------------------------

    def _live(self) -> None:
        operation = self.choose(40)
        self.disk.lose_power_after(operation if self.choose(3) else 0)
        try:
            for _ in range(1 + self.choose(STEPS)):
                self._step()
        except PowerLost:
            self.tally["power lost in a step"] += 1
        self.disk.before_each = None
        power = self.choose(3) > 0
        self.story.append("power lost" if power else "process killed")
        self.pair.crash(self.choose, power=power)

    # -- steps -------------------------------------------------------------------------------------------------------

    def _step(self) -> None:
        pair = self.pair
        steps: tuple[tuple[int, Callable[[], None]], ...] = (
            (6, self._prepare), (2, self._prepare_many), (8, self._commit), (4, self._roll_back),
            (2, self._decide_many), (3, self._tick), (3, self._check), (2, self._park), (2, pair.write_op),
            (3, pair.advance), (3, pair.flush), (2, pair.save),
        )  # fmt: skip
        step = one_of(self.choose, steps)
        self.tally[step.__name__] += 1
        self.story.append(step.__name__)
        step()
        pair.compare()

    def _prepare(self) -> None:
        self.pair.prepare(self.choose(3), self.choose(40), self.choose(2))

    def _prepare_many(self) -> None:
        count = 1 + self.choose(6)
        self.pair.prepare_many([(self.choose(3), self.choose(2) > 0) for _ in range(count)])

    def _any(self) -> int:
        """A half, of whichever version, or none."""
        way, pair = self.choose(6), self.pair
        parked = [s.newest for s in pair.models.halves.values() if s.phase == Phase.PARKED]
        if way == 0 and parked:
            return parked[self.choose(len(parked))]
        return self.choose(pair.tx.table.end + 2) if way == 1 else self._open_one()

    def _open_one(self) -> int:
        undecided = [s.newest for s in self.pair.models.halves.values() if s.phase == Phase.PREPARED]
        return undecided[self.choose(len(undecided))] if undecided else self.choose(self.pair.tx.table.end + 1)

    def _commit(self) -> None:
        self.pair.decide(self._any(), Phase.COMMITTED)

    def _roll_back(self) -> None:
        self.pair.decide(self._any(), Phase.ROLLED_BACK)

    def _decide_many(self) -> None:
        numbers = [self._open_one() for _ in range(1 + self.choose(4))]
        self.pair.decide_many(numbers, DECISIONS[self.choose(2)])

    def _tick(self) -> None:
        """Time goes by, and ops are written when they are due."""
        self.pair.pass_time((100, 1000, 1500, 4000)[self.choose(4)])

    def _check(self) -> None:
        """Some halves that are due are put back, and asked about."""
        due = self.pair.due()
        self.pair.put_back(due[: 1 + self.choose(len(due) + 1)])

    def _park(self) -> None:
        self.pair.park(self.pair.due())

    def _come_to_rest(self) -> None:
        self.story.append("rest")
        answers = self.choose(3)  # all commit, all roll back, none answers
        self.pair.come_to_rest(DECISIONS[answers] if answers < 2 else None, self.choose)
