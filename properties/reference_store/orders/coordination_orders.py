"""Small cases of a coordinator and of a client's permits: a timeout and a reply, in every order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

from gapless.impl.coordinator.coordinator_values import CoordinatorSettings
from gapless.properties.reference_store.coordination.coordinator_refinement import CoordinatorRefinement
from gapless.properties.reference_store.coordination.permits_refinement import PermitsRefinement
from gapless.properties.reference_store.orders.every_order import Crash, SmallCase, SmallWorld, Step

LIFE = 100  # ms
TIMEOUT = 10  # ms
FIRST = 0  # the number of the transaction that is looked at


class CoordinatorWorld:
    """A coordinator and its model, with one active transaction, and room for no other."""

    def __init__(self) -> None:
        self.pair = CoordinatorRefinement(CoordinatorSettings(1, 10, 1 << 14))
        self.pair.ask(0, LIFE)
        self.pair.flush()
        self.pair.hand(FIRST)
        self.pair.add(FIRST)
        self.pair.flush()

    @property
    def operations(self) -> int:
        """Make the actors of `SmallWorld`."""
        return self.pair.disk.operations

    def crash(self, way: Crash) -> None:
        """The process or the power is gone."""
        self.pair.disk.before_each = None
        self.pair.crash("lose" if way.power else "kill", 1, lambda ways: 0 if ways == 3 else way.choose(ways))

    def lose_power_after(self, operation: int) -> None:
        """End the life, as `SmallWorld` asks."""
        self.pair.disk.lose_power_after(operation)

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


def _coordinator(what: Callable[[CoordinatorRefinement], object]) -> Step:
    def taken(world: SmallWorld) -> None:
        what(cast("CoordinatorWorld", world).pair)

    return taken


def _permits(what: Callable[[PermitsRefinement], object]) -> Step:
    def taken(world: SmallWorld) -> None:
        what(cast("PermitsWorld", world).pair)

    return taken


def _late(pair: CoordinatorRefinement) -> None:
    pair.now += LIFE


FLUSH = _coordinator(lambda pair: pair.flush())
_TIMES_OUT = (_coordinator(_late), _coordinator(lambda pair: pair.time_out(FIRST)))
_ASKS_AGAIN = _coordinator(lambda pair: pair.ask(1, LIFE))


def _asks(number: int) -> Step:
    def ask(pair: PermitsRefinement) -> None:
        if pair.asked == number:
            pair.ask()

    return _permits(ask)


CASES = (
    *(
        SmallCase(
            f"a timeout and a client that {'commits' if commit else 'aborts'}",
            CoordinatorWorld,
            (
                (
                    _coordinator(partial(CoordinatorRefinement.decide, number=FIRST, commit=commit)),
                    _coordinator(lambda pair: pair.acknowledge(FIRST)),
                ),
                _TIMES_OUT,
                (FLUSH, FLUSH),
                (_coordinator(lambda pair: pair.finish(FIRST)),),
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
            (_permits(lambda pair: pair.reply(0)), _permits(lambda pair: pair.reply(1))),
            tuple(
                _permits(step)
                for step in (
                    lambda pair: pair.tick(TIMEOUT),
                    lambda pair: pair.time_out(0),
                    lambda pair: pair.tick(TIMEOUT),
                    lambda pair: pair.time_out(1),
                )
            ),
            (_permits(lambda pair: pair.disconnect()),),
        ),
        ways="none",
    ),
)
