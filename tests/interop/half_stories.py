"""Stores with open halves: ours that a broker goes on with, and a broker's that we go on with."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.interop import half_rounds, halves, rounds
from tests.interop.ledger import OPEN, Ledger
from tests.interop.rounds import Step
from tests.interop.setup import Setup


def _ours(setup: Setup, name: str, *, clean: bool) -> Iterator[Step]:
    """A store of ours with transactions of every kind, opened by a broker, by us, and by the broker again."""
    ledger = halves.write(setup.fresh(name), clean=clean)
    how = "closed" if clean else "abandoned"
    seen = f"{len(ledger.transactions)} transactions, {len(ledger.of_fate(OPEN))} open"
    yield Step(f"a store is written and {how}", seen)
    yield half_rounds.judge(ledger, "strict")
    yield from half_rounds.visit(setup, ledger)
    yield half_rounds.judge(ledger, "rocketmq")
    yield from _go_on(setup, ledger)


def _of_a_broker(setup: Setup, name: str, *, end: str) -> Iterator[Step]:
    """A store of a broker's, stopped or killed with halves open, then opened by us, and by the broker again."""
    home = setup.fresh(name)
    (home / "store").mkdir()
    ledger = Ledger(home)
    yield from half_rounds.visit(setup, ledger, end=end)
    yield half_rounds.judge(ledger, "rocketmq")
    yield from _go_on(setup, ledger)


def _go_on(setup: Setup, ledger: Ledger) -> Iterator[Step]:
    yield from halves.visit(ledger)
    yield half_rounds.judge(ledger, "rocketmq")
    yield from half_rounds.visit(setup, ledger, leave=False)
    yield half_rounds.judge(ledger, "rocketmq")
    yield rounds.complain(setup.broker(ledger.home.name))


def _story(tell: Callable[..., Iterator[Step]], **how: bool | str) -> Callable[[Setup, str], Iterator[Step]]:
    return lambda setup, name: tell(setup, name, **how)


STORIES = {
    "halves-closed": _story(_ours, clean=True),
    "halves-abandoned": _story(_ours, clean=False),
    "halves-of-a-broker-stopped": _story(_of_a_broker, end="stop"),
    "halves-of-a-broker-killed": _story(_of_a_broker, end="kill"),
}
