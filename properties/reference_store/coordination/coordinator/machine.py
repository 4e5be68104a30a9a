"""Hypothesis drives a coordinator and its model.

The steps are those of `spec/coordinator.py`, under the names of those that the implementation takes (`COUNTERPARTS`).
The log is compared by its bytes on disk. In the end everything comes to rest, and what was recorded conforms.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.stateful import initialize

from gapless.impl.coordinator.recorder import StepTape
from gapless.impl.coordinator.values import CoordinatorSettings
from gapless.properties.machines.stateful.refinement_machine import CHOICES, RefinementMachine, chosen, offered
from gapless.properties.reference_store.coordination.coordinator.refinement import CoordinatorRefinement
from gapless.properties.reference_store.recorded_conformance import require_conformance

COUNTERPARTS = {
    "open": "start",
    "admit": "ask",
    "ignore": "ask",
    "begin": "flush",
    "burn": "flush_full",
    "unload": "crash",
    "load": "crash",
    "recover": "crash",
}
"""Steps of the spec that are part of another one's rule. The coordinator itself says whom it admits and ignores."""

OUTSIDE_THE_SPEC = {
    "wait": "time is an argument of the steps",
    "race": "a client and the clock ask for the end of one transaction at once",
    "live": "the steps of a client from its request up to some point, so that much is done in a program",
}

LIMITS = st.sampled_from((3, 0, 1, 2, 3, 0, -1))
NUMBERS = st.sampled_from((0, 0, 0, 1, 1, 2, 3, -1, 99))  # counted back from the newest transaction
AGAIN = st.sampled_from((None, None, None, 0, 1, 2, 4))  # a request is new, or was made so many requests ago
LIVES = st.sampled_from((1, 99, 100, 5000))
ENDS = st.sampled_from((None,) * 2 + ("close", "kill", "lose", "kill in a flush", "lose in a flush", "lose in a use"))
WAYS = ("takes part", "hurry", "full")  # how a client and its disk may be


def _newest(pair: CoordinatorRefinement) -> int:
    """The newest of the transactions that have begun, or are about to."""
    return max(pair.core.table, default=pair.core.end - 1)


def _ask(pair: CoordinatorRefinement, again: int | None, life: int) -> None:
    pair.ask(pair.newest + 1 if again is None else max(pair.newest - again, 0), life)


def _add(pair: CoordinatorRefinement, number: int, *, flush: bool) -> None:
    pair.add(_newest(pair) - number)
    if flush:
        pair.flush()


def _decide(pair: CoordinatorRefinement, number: int, *, commit: bool) -> None:
    pair.decide(_newest(pair) - number, commit=commit)


def _race(pair: CoordinatorRefinement, number: int, *, commit: bool, first: bool) -> None:
    """A client ends its transaction when that has just had its time, and nothing is flushed between."""
    pair.wait(5000)
    if first:
        _decide(pair, number, commit=commit)
    pair.time_out(_newest(pair) - number)
    if not first:
        _decide(pair, number, commit=commit)


def _live(pair: CoordinatorRefinement, upto: int, ways: set[str], *, commit: bool) -> None:
    """A client does what clients do, and stops somewhere."""
    request = pair.newest + 1
    steps: tuple[Callable[[], object], ...] = (
        lambda: pair.ask(request, 100),
        lambda: pair.flush(full="full" in ways),
        lambda: pair.hand(_newest(pair)),
        lambda: pair.add(_newest(pair)) if "takes part" in ways else None,
        lambda: _decide(pair, 0, commit=commit),
        lambda: None if "hurry" in ways else pair.flush(full="full" in ways),
        lambda: pair.finish(_newest(pair)),
        pair.flush,
        lambda: pair.acknowledge(_newest(pair)),
        lambda: pair.ask(max(request - 1, 0), 100),
    )
    for step in (*steps[:upto], steps[-1]):
        step()


def _crash(pair: CoordinatorRefinement, end: str | None, limit: int, choices: list[int]) -> None:
    """This life ends, perhaps, and another begins."""
    if end is not None:
        pair.crash(end, limit, chosen(choices))


class CoordinatorMachine(RefinementMachine):
    """One coordinator on a simulated disk, and the model."""

    recorded = True

    @initialize(limit=LIMITS, keep=st.sampled_from((1, 1, 2, 100)), size=st.sampled_from((128, 128, 1 << 14)))
    def start(self, limit: int, keep: int, size: int) -> None:
        """A new coordinator. Its files are so small that it begins another one now and then."""
        self.tape = StepTape()
        self.pair = CoordinatorRefinement(CoordinatorSettings(limit, keep, size), self.tape.coordinator())

    ask = offered(_ask, again=AGAIN, life=LIVES)
    hand = offered(lambda pair, number: pair.hand(_newest(pair) - number), number=NUMBERS)
    add = offered(_add, number=NUMBERS, flush=st.booleans())
    decide = offered(_decide, number=NUMBERS, commit=st.booleans())
    time_out = offered(lambda pair, number: pair.time_out(_newest(pair) - number), number=NUMBERS)
    finish = offered(lambda pair, number: pair.finish(_newest(pair) - number), number=NUMBERS)
    acknowledge = offered(lambda pair, number: pair.acknowledge(_newest(pair) - number), number=NUMBERS)
    flush = offered(CoordinatorRefinement.flush)
    flush_full = offered(lambda pair: pair.flush(full=True))
    live = offered(_live, upto=st.integers(2, 10), ways=st.sets(st.sampled_from(WAYS)), commit=st.booleans())
    race = offered(_race, number=NUMBERS, commit=st.booleans(), first=st.booleans())
    wait = offered(CoordinatorRefinement.wait, by=st.sampled_from((1, 50, 100, 5000)))
    crash = offered(_crash, end=ENDS, limit=LIMITS, choices=CHOICES)

    def come_to_rest(self) -> None:
        """Every transaction ends, and what was recorded conforms."""
        self.pair.rest()
        if self.recorded:
            require_conformance(self.tape)
