"""Small cases of a coordinator and of a client's permits: a timeout and a reply, in every order."""

from __future__ import annotations

from functools import partial

from gapless.impl.coordinator.values import CoordinatorSettings
from gapless.properties.reference_store.coordination.coordinator.refinement import CoordinatorRefinement
from gapless.properties.reference_store.coordination.permits.refinement import PermitsRefinement
from gapless.properties.reference_store.orders.every_order import Crash, PairWorld, SmallCase, Step, step_of

LIFE = 100  # ms
TIMEOUT = 10  # ms
FIRST = 0  # the number of the transaction that is looked at


class CoordinatorWorld(PairWorld):
    """A coordinator and its model, with one active transaction, and room for no other."""

    def __init__(self) -> None:
        self.pair = CoordinatorRefinement(CoordinatorSettings(1, 10, 1 << 14))
        self.pair.ask(0, LIFE)
        self.pair.flush()
        self.pair.hand(FIRST)
        self.pair.add(FIRST)
        self.pair.flush()

    def crash(self, way: Crash) -> None:
        """The process or the power is gone."""
        self.pair.disk.before_each = None
        self.pair.crash("lose" if way.power else "kill", 1, lambda ways: 0 if ways == 3 else way.choose(ways))

    def rest(self) -> None:
        """Every slot is free."""
        self.pair.rest()


class PermitsWorld:
    """A client with one permit, and its model. It uses no disk."""

    operations = 0

    def __init__(self) -> None:
        self.pair = PermitsRefinement(1, TIMEOUT)

    def crash(self, way: Crash) -> None:
        """A client that is gone holds no permit: there is nothing to look at."""
        raise NotImplementedError

    def lose_power_after(self, operation: int) -> None:
        """It uses no disk."""

    def rest(self) -> None:
        """Every permit comes back."""
        self.pair.drain()


def _late(pair: CoordinatorRefinement) -> None:
    pair.now += LIFE


FLUSH = step_of(lambda pair: pair.flush())
_TIMES_OUT = (step_of(_late), step_of(lambda pair: pair.time_out(FIRST)))
_ASKS_AGAIN = step_of(lambda pair: pair.ask(1, LIFE))


def _asks(number: int) -> Step:
    def ask(pair: PermitsRefinement) -> None:
        if pair.asked == number:
            pair.ask()

    return step_of(ask)


CASES = (
    *(
        SmallCase(
            f"a timeout and a client that {'commits' if commit else 'aborts'}",
            CoordinatorWorld,
            (
                (
                    step_of(partial(CoordinatorRefinement.decide, number=FIRST, commit=commit)),
                    step_of(lambda pair: pair.acknowledge(FIRST)),
                ),
                _TIMES_OUT,
                (FLUSH, FLUSH),
                (step_of(lambda pair: pair.finish(FIRST)),),
                (_ASKS_AGAIN,),
            ),
            outlive=frozenset({0, 4}),
        )
        for commit in (True, False)
    ),
    SmallCase(
        "a timeout and a reply",
        PermitsWorld,
        (
            (_asks(0), _asks(1)),
            (step_of(lambda pair: pair.reply(0)), step_of(lambda pair: pair.reply(1))),
            tuple(
                step_of(step)
                for step in (
                    lambda pair: pair.tick(TIMEOUT),
                    lambda pair: pair.time_out(0),
                    lambda pair: pair.tick(TIMEOUT),
                    lambda pair: pair.time_out(1),
                )
            ),
            (step_of(lambda pair: pair.disconnect()),),
        ),
        ways="none",
    ),
)
