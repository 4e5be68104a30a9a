"""Small cases of transactions: a check and a late decision, halves that leave the cache, and where a crash hurts.

The steps of the check service are those that it takes under the store's lock, one at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

from gapless.properties.reference_store.orders.every_order import Crash, PairWorld, SmallCase, SmallWorld, Step
from gapless.properties.reference_store.transactional.transaction_pair import TIMEOUT, PairSettings, TransactionPair
from gapless.spec.transaction import Phase


class TransactionWorld(PairWorld):
    """A store and its models, and what the check service knows between two steps: `asked`, the halves it put back."""

    pair: TransactionPair

    def __init__(self, chosen: PairSettings, halves: int, answers: tuple[Phase | None, ...] = ()) -> None:
        self.pair = TransactionPair(chosen)
        self.pair.start()
        for _ in range(halves):
            self.pair.prepare(0, 10, 0)
        self.pair.flush()
        self.pair.pass_time(TIMEOUT + 1)
        self.answers = answers
        self.due: list[int] = []
        self.asked: list[int] = []

    def crash(self, way: Crash) -> None:
        """The process or the power is gone."""
        self.pair.disk.before_each = None
        self.pair.crash(way.choose, power=way.power)

    def rest(self) -> None:
        """No producer answers any more."""
        self.pair.come_to_rest(None, lambda ways: ways - 1)


def _step(what: Callable[[TransactionWorld], object]) -> Step:
    """A step, and the comparison that follows each."""

    def taken(world: SmallWorld) -> None:
        ours = cast("TransactionWorld", world)
        what(ours)
        ours.pair.compare()

    return taken


def _answered(world: TransactionWorld, decision: Phase) -> None:
    """Apply the producers' answers, as far as halves are still undecided."""
    first = world.pair.tx.table
    some = [number for number in world.asked if world.answers[_half(world, number)] == decision]
    open_ = [number for number in some if first.status[number - first.base] == 0]
    if open_:
        world.pair.decide_many(open_, decision)


def _half(world: TransactionWorld, number: int) -> int:
    """The half of a version: the place of the first one."""
    key = world.pair.models.keys[number]
    return min(version for version, of in world.pair.models.keys.items() if of == key)


def _look(world: TransactionWorld) -> None:
    world.due = world.pair.due()


def _put_back(world: TransactionWorld) -> None:
    world.asked = [half.number for half in world.pair.put_back(world.due)]


ROUND: tuple[Step, ...] = (
    _step(lambda w: w.pair.write_op()),
    _step(_look),
    _step(lambda w: w.pair.park(w.due)),
    _step(_put_back),
    _step(lambda w: _answered(w, Phase.COMMITTED)),
    _step(lambda w: _answered(w, Phase.ROLLED_BACK)),
    _step(lambda w: w.pair.advance()),
    _step(lambda w: w.pair.flush()),
    _step(lambda w: w.pair.save()),
)
"""A round of checks."""


def _decide(number: int, decision: Phase) -> Step:
    return _step(lambda w: w.pair.decide(number, decision))


def _prepare(queue: int) -> Step:
    return _step(lambda w: w.pair.prepare(queue, 10, 0))


def _decide_last(queue: int, decision: Phase) -> Step:
    """The newest half for this queue is decided."""

    def decide(world: TransactionWorld) -> None:
        pair = world.pair
        known = [n for n, record in pair.models.records.items() if record.properties["REAL_QID"] == str(queue)]
        pair.decide(max(known, default=pair.tx.table.end), decision)

    return _step(decide)


COMMIT, ROLL_BACK = Phase.COMMITTED, Phase.ROLLED_BACK
SMALL = PairSettings(op_bytes=20, capacity=3, max_checks=1)

CASES = (
    SmallCase(
        "a check and a late decision",
        partial(TransactionWorld, SMALL, 2, (COMMIT, ROLL_BACK)),
        (ROUND, (_decide(0, COMMIT), _decide(0, COMMIT)), (_decide(1, ROLL_BACK),)),
        outlive=frozenset({1, 2}),
    ),
    SmallCase(
        "a check whose answer contradicts a late decision",
        partial(TransactionWorld, SMALL, 1, (ROLL_BACK,)),
        (ROUND, (_decide(0, COMMIT), _decide(0, ROLL_BACK))),
        outlive=frozenset({1}),
    ),
    *(
        SmallCase(
            f"halves that leave a cache of {capacity}",
            partial(TransactionWorld, PairSettings(op_bytes=4096, capacity=capacity), 0),
            (
                (_prepare(0), _decide_last(0, COMMIT)),
                (_prepare(1), _decide_last(1, ROLL_BACK)),
                (_prepare(2), _decide_last(2, COMMIT)),
                (_step(lambda w: w.pair.flush()),),
            ),
            outlive=frozenset({0, 1, 2}),
        )
        for capacity in (1, 2)
    ),
    *(
        SmallCase(
            f"{decision.name.lower().replace('_', ' ')}, a final or nothing, an op, the cursors",
            partial(TransactionWorld, PairSettings(op_bytes=4096, file_size=2048, sector=64), 1),
            (
                (
                    _step(lambda w: w.pair.prepare_many([(0, True), (1, False), (2, True)])),
                    _step(lambda w: w.pair.decide(0, COMMIT)),
                    _step(lambda w, decision=decision: w.pair.decide_many([1, 2, 3], decision)),  # type: ignore[misc]
                    _step(lambda w: w.pair.write_op()),
                    _step(lambda w: w.pair.advance()),
                    _step(lambda w: w.pair.flush()),
                    _step(lambda w: w.pair.save()),
                ),
            ),
            ways="all",
        )
        for decision in (COMMIT, ROLL_BACK)
    ),
)
