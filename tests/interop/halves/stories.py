"""Stores with open halves: ours continued by a broker, and a broker's continued by us."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.interop import rounds
from tests.interop.halves import faults, visits, writing
from tests.interop.halves.comparing import judge
from tests.interop.halves.ledger import OPEN, Ledger
from tests.interop.rounds import Step
from tests.interop.setup import Setup


def _ours(setup: Setup, name: str, *, clean: bool) -> Iterator[Step]:
    """A store of ours with transactions of every kind, opened by a broker, by us, and by the broker again."""
    ledger = writing.write(setup.fresh(name), clean=clean)
    how = "closed" if clean else "abandoned"
    seen = f"{len(ledger.transactions)} transactions, {len(ledger.of_fate(OPEN))} open"
    yield Step(f"a store is written and {how}", seen)
    yield judge(ledger, "strict")
    yield from visits.visit(setup, ledger)
    yield judge(ledger, "rocketmq")
    yield from _go_on(setup, ledger)


def _of_a_broker(setup: Setup, name: str, *, end: str) -> Iterator[Step]:
    """Let a broker stop or die with open halves; then we open its store, and the broker again."""
    home = setup.fresh(name)
    (home / "store").mkdir()
    ledger = Ledger(home)
    yield from visits.visit(setup, ledger, end=end)
    yield judge(ledger, "rocketmq")
    yield from _go_on(setup, ledger)


def _damaged(setup: Setup, name: str) -> Iterator[Step]:
    """A store with faults, so that it is seen that they would be."""
    ledger, planted = faults.write(setup.fresh(name))
    yield from visits.notice(setup, ledger, planted)


def _go_on(setup: Setup, ledger: Ledger) -> Iterator[Step]:
    yield from writing.visit(ledger)
    yield judge(ledger, "rocketmq", index_stands=True)
    yield from visits.visit(setup, ledger, leave=False)
    yield judge(ledger, "rocketmq", index_stands=True)
    yield rounds.complain(setup.broker(ledger.home.name))


def _story(tell: Callable[..., Iterator[Step]], **how: bool | str) -> Callable[[Setup, str], Iterator[Step]]:
    return lambda setup, name: tell(setup, name, **how)


STORIES = {
    "halves-closed": _story(_ours, clean=True),
    "halves-abandoned": _story(_ours, clean=False),
    "halves-of-a-broker-stopped": _story(_of_a_broker, end="stop"),
    "halves-of-a-broker-killed": _story(_of_a_broker, end="kill"),
    "halves-damaged": _damaged,
}
