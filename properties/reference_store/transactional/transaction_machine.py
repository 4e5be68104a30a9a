"""Hypothesis drives transactions and their models: every step is always offered, and both take it, or both refuse.

The rules are the steps of `spec/transaction.py`, under the names of those that the implementation takes
(`COUNTERPARTS`). Whole states are compared inside each step (`transaction_pair.py`): every half with all its versions,
what waits for its op, the cache, the cursors. In the end everything comes to rest.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

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
CHOICES = st.lists(st.integers(0, 11), max_size=6)


class TransactionMachine(RuleBasedStateMachine):
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

    def _number(self, back: int) -> int:
        """A version by how many came after it; some are not there."""
        return self.pair.tx.table.end - 1 - back

    def _known(self, numbers: list[int]) -> list[int]:
        """Those that the store knows: the check service looks at no others."""
        table = self.pair.tx.table
        found = [self._number(back) for back in numbers]
        return sorted({number for number in found if max(table.base, 0) <= number < table.end})

    @rule(queue=QUEUES, size=st.integers(0, 40), flag=st.integers(0, 1))
    def prepare(self, queue: int, size: int, flag: int) -> None:
        """A half."""
        self.pair.prepare(queue, size, flag)
        self.pair.compare()

    @rule(aims=st.lists(st.tuples(QUEUES, st.booleans()), min_size=1, max_size=6))
    def prepare_many(self, aims: list[tuple[int, bool]]) -> None:
        """Several of them."""
        self.pair.prepare_many(aims)
        self.pair.compare()

    @rule(back=NUMBERS)
    def commit(self, back: int) -> None:
        """A producer commits a version, whatever has become of it."""
        self.pair.decide(self._number(back), Phase.COMMITTED)
        self.pair.compare()

    @rule(back=NUMBERS)
    def roll_back(self, back: int) -> None:
        """A producer rolls a version back, whatever has become of it."""
        self.pair.decide(self._number(back), Phase.ROLLED_BACK)
        self.pair.compare()

    @rule(backs=st.lists(NUMBERS, min_size=1, max_size=4), decision=DECISIONS)
    def decide_many(self, backs: list[int], decision: Phase) -> None:
        """A producer decides several."""
        self.pair.decide_many([self._number(back) for back in backs], decision)
        self.pair.compare()

    @rule(backs=st.lists(NUMBERS, min_size=1, max_size=4))
    def check(self, backs: list[int]) -> None:
        """The check service puts these back, due or not, where that may be."""
        self.pair.put_back(self._known(backs))
        self.pair.compare()

    @rule(backs=st.lists(NUMBERS, min_size=1, max_size=4))
    def park(self, backs: list[int]) -> None:
        """The check service sets these aside, where that may be."""
        self.pair.park(self._known(backs))
        self.pair.compare()

    @rule()
    def mark(self) -> None:
        """An op names what waits."""
        self.pair.write_op()
        self.pair.compare()

    @rule(by=st.sampled_from((100, 1000, 1500, 4000)))
    def wait(self, by: int) -> None:
        """Time goes by, and ops are written when they are due."""
        self.pair.pass_time(by)
        self.pair.compare()

    @rule()
    def advance(self) -> None:
        """Both cursors move on."""
        self.pair.advance()
        self.pair.compare()

    @rule()
    def acknowledge(self) -> None:
        """All is on disk, and producers hear of their decisions."""
        self.pair.flush()
        self.pair.compare()

    @rule()
    def save(self) -> None:
        """The cursors are in their file, if what they rely on is on disk."""
        self.pair.save()
        self.pair.compare()

    @rule(checks=st.integers(0, 4), decision=DECISIONS, upto=st.integers(2, 9))
    def live(self, checks: int, decision: Phase, upto: int) -> None:
        """A half goes its way, and stops somewhere; where its checks are spent, it is set aside."""
        steps: tuple[Callable[[], None], ...] = (
            lambda: self.prepare(0, 10, 0), *([lambda: self.check([0])] * checks), lambda: self.park([0]),
            lambda: self.decide_many([0], decision), self.mark, self.advance, self.save,
        )  # fmt: skip
        for step in steps[:upto]:
            step()

    @rule(power=st.booleans(), choices=CHOICES)
    def crash(self, power: bool, choices: list[int]) -> None:  # noqa: FBT001 - drawn by name
        """The power or the process is gone."""
        self.pair.crash(lambda ways: choices.pop() % ways if choices else 0, power=power)

    def teardown(self) -> None:
        """Everything comes to rest: no producer answers any more."""
        if hasattr(self, "pair") and sys.exc_info()[0] is None:  # otherwise the machine has failed already
            self.pair.come_to_rest(None, lambda ways: ways - 1)
            for what in +self.pair.tally:
                event(what)
