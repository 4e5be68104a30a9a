"""Hypothesis drives transactions and their models.

The steps are those of `spec/transaction.py`, under the names of those that the implementation takes (`COUNTERPARTS`).
Whole states are compared after each (`transaction_pair.py`): every half with all its versions, what waits for its op,
the cache, the cursors.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.stateful import initialize

from gapless.properties.machines.stateful.refinement_machine import CHOICES, RefinementMachine, chosen, offered
from gapless.properties.reference_store.transactional.transaction_pair import PairSettings, TransactionPair
from gapless.spec.transaction import Phase

COUNTERPARTS = {
    "open": "start",
    "ask_to_commit": "commit",
    "ask_to_roll_back": "roll_back",
    "ask_back": "check",
}
"""Steps of the spec that are part of another one's rule: who decides has asked, and who is put back is asked."""

NO_COUNTERPART = {
    "restart": "a store keeps its `max_checks` in these programs",
    "outlive": "nothing expires here: walks over disks that fail have that",
}

OUTSIDE_THE_SPEC = {
    "prepare_many": "several halves at once",
    "decide_many": "several decisions at once",
    "wait": "time is an argument of the steps",
    "advance": "the cursors of the check service: spec/checkpoint.py",
    "save": "likewise",
    "live": "a half is decided, named and passed by the cursors, up to some point, so that much is done in a program",
}

NUMBERS = st.sampled_from((0, 0, 0, 0, 1, 1, 2, 3, 5, -1, 99))  # counted back from the newest version
QUEUES = st.integers(0, 2)
DECISIONS = st.sampled_from((Phase.COMMITTED, Phase.ROLLED_BACK))
BACKS = st.lists(NUMBERS, min_size=1, max_size=4)


def _number(pair: TransactionPair, back: int) -> int:
    """A version by how many came after it; some are not there."""
    return pair.tx.table.end - 1 - back


def _known(pair: TransactionPair, backs: list[int]) -> list[int]:
    """Those that the store knows: the check service looks at no others."""
    table = pair.tx.table
    found = [_number(pair, back) for back in backs]
    return sorted({number for number in found if max(table.base, 0) <= number < table.end})


def _check(pair: TransactionPair, backs: list[int]) -> None:
    pair.put_back(_known(pair, backs))


def _park(pair: TransactionPair, backs: list[int]) -> None:
    pair.park(_known(pair, backs))


def _decide_many(pair: TransactionPair, backs: list[int], decision: Phase) -> None:
    pair.decide_many([_number(pair, back) for back in backs], decision)


def _live(pair: TransactionPair, checks: int, decision: Phase, upto: int) -> None:
    """A half goes its way, and stops somewhere; where its checks are spent, it is set aside."""
    steps: tuple[Callable[[], None], ...] = (
        lambda: pair.prepare(0, 10, 0), *([lambda: _check(pair, [0])] * checks), lambda: _park(pair, [0]),
        lambda: _decide_many(pair, [0], decision), pair.write_op, pair.advance, pair.save,
    )  # fmt: skip
    for step in steps[:upto]:
        step()
        pair.compare()


class TransactionMachine(RefinementMachine):
    """One store on a simulated disk, and the models."""

    @initialize(
        op_bytes=st.sampled_from((7, 20, 4096)),
        capacity=st.sampled_from((3, 0, 1, 8000)),
        max_checks=st.integers(1, 3),
        file_size=st.sampled_from((4096, 2048)),
    )
    def start(self, op_bytes: int, capacity: int, max_checks: int, file_size: int) -> None:
        """A new store. Its files are so small that it begins another one now and then."""
        self.pair = TransactionPair(PairSettings(op_bytes, capacity, max_checks, file_size))
        self.pair.start()

    def offer(self, name: str, step: Callable[[], object]) -> None:
        """Take a step of both, and compare whole states."""
        super().offer(name, step)
        self.pair.compare()

    prepare = offered(TransactionPair.prepare, queue=QUEUES, size=st.integers(0, 40), flag=st.integers(0, 1))
    prepare_many = offered(
        TransactionPair.prepare_many,
        aims=st.lists(st.tuples(QUEUES, st.booleans()), min_size=1, max_size=6),
    )
    commit = offered(lambda pair, back: pair.decide(_number(pair, back), Phase.COMMITTED), back=NUMBERS)
    roll_back = offered(lambda pair, back: pair.decide(_number(pair, back), Phase.ROLLED_BACK), back=NUMBERS)
    decide_many = offered(_decide_many, backs=BACKS, decision=DECISIONS)
    check = offered(_check, backs=BACKS)
    park = offered(_park, backs=BACKS)
    mark = offered(TransactionPair.write_op)
    wait = offered(TransactionPair.pass_time, ms=st.sampled_from((100, 1000, 1500, 4000)))
    advance = offered(TransactionPair.advance)
    acknowledge = offered(TransactionPair.flush)
    save = offered(TransactionPair.save)
    live = offered(_live, checks=st.integers(0, 4), decision=DECISIONS, upto=st.integers(2, 9))
    crash = offered(
        lambda pair, power, choices: pair.crash(chosen(choices), power=power), power=st.booleans(), choices=CHOICES
    )

    def come_to_rest(self) -> None:
        """No producer answers any more."""
        self.pair.come_to_rest(None, lambda ways: ways - 1)
