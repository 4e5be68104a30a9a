"""The base of Hypothesis machines in which each step is a line; `log_machine.py` is one that is written out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from gapless.properties.simulation.choices import Choose

CHOICES = st.lists(st.integers(0, 11), max_size=6)
"""Choices of a crash; `chosen` makes them answer."""


class RefinementMachine(RuleBasedStateMachine):
    """Hypothesis drives a pair of an implementation and its model.

    Every step is always offered, with any arguments: both take it, or both refuse it. The pair compares states inside
    each step, so that a failing program consists of steps alone.
    """

    pair: Any

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, step in vars(cls).items():
            if offer := getattr(step, "hypothesis_stateful_rule", None):
                offer.function.__name__ = name  # in programs, a step is called as it is here

    def offer(self, _name: str, step: Callable[[], object]) -> None:
        """Take a step of the pair."""
        step()

    def come_to_rest(self) -> None:
        """Everything comes to rest."""

    def teardown(self) -> None:
        """Rest, where the machine has not failed; Hypothesis shows what happened."""
        if hasattr(self, "pair") and sys.exc_info()[0] is None:
            self.come_to_rest()
            for what in +self.pair.tally:
                event(what)


def offered(step: Callable[..., object], **arguments: st.SearchStrategy[Any]) -> Any:
    """A step of the pair, as a rule: it is called with the pair, and with whatever these strategies draw."""

    def offer(machine: RefinementMachine, **drawn: Any) -> None:
        machine.offer(offer.__name__, partial(step, machine.pair, **drawn))

    made: Any = rule  # no strategy is called `target`
    return made(**arguments)(offer)


def chosen(choices: list[int]) -> Choose:
    """The last of these choices, and then the one before it; the plainest once they are used up."""
    return lambda ways: choices.pop() % ways if choices else 0
