"""The specs that traces are held against, by name, with what every reader needs to know of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from inspect import signature
from types import ModuleType
from typing import Any, get_args, get_origin, get_type_hints

from gapless.spec import (
    broker,
    checkpoint,
    coordinator,
    dispatch,
    half_cache,
    log,
    op_batch,
    permits,
    queue,
    ring,
    transaction,
)
from gapless.spec.language import Deviation, Map, Refused

State = Any
"""A frozen dataclass of integers and Maps; each spec has its own."""


@dataclass(frozen=True)
class Spec:
    """One spec module, seen as data: actions and their arguments by name, fields, deviations."""

    module: ModuleType

    @property
    def name(self) -> str:
        """The module's name, as it stands in events and rule ids."""
        return self.module.__name__.rpartition(".")[2]

    @property
    def initial(self) -> State:
        """The state before the first step."""
        return self.module.INITIAL

    @cached_property
    def actions(self) -> Mapping[str, Callable[..., State]]:
        """Every action by name, in the order of `ACTIONS`; an event's code is its index here."""
        return {action.__name__: action for action in self.module.ACTIONS}

    @cached_property
    def codes(self) -> Mapping[str, int]:
        """The code of every action."""
        return {name: code for code, name in enumerate(self.actions)}

    @cached_property
    def deviations(self) -> tuple[Deviation[Any], ...]:
        """The steps that real brokers take and the design forbids."""
        return tuple(self.module.DEVIATIONS)

    @cached_property
    def parameters(self) -> Mapping[str, tuple[str, ...]]:
        """The arguments of every action, the state left out."""
        return {name: tuple(signature(action).parameters)[1:] for name, action in self.actions.items()}

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """Every argument name of the spec once; a column of events each."""
        return tuple(dict.fromkeys(name for names in self.parameters.values() for name in names))

    @cached_property
    def scalars(self) -> tuple[str, ...]:
        """The state's fields that are integers."""
        return tuple(f.name for f in fields(self.initial) if not isinstance(getattr(self.initial, f.name), Map))

    @cached_property
    def maps(self) -> tuple[str, ...]:
        """The state's fields that are Maps."""
        return tuple(f.name for f in fields(self.initial) if isinstance(getattr(self.initial, f.name), Map))

    @cached_property
    def key_types(self) -> frozenset[Any]:
        """The types of which the state's Maps have their keys."""
        hints = get_type_hints(type(self.initial)).values()
        return frozenset(get_args(hint)[0] for hint in hints if get_origin(hint) is Map)

    def invariants(self, *, weak: bool = False) -> tuple[Callable[..., bool], ...]:
        """What holds in every state; with `weak`, what is left of it where deviations are taken too."""
        invariants: tuple[Callable[..., bool], ...] = self.module.INVARIANTS
        return getattr(self.module, "WEAK_INVARIANTS", invariants) if weak else invariants

    def step_properties(self, *, weak: bool = False) -> tuple[Callable[..., bool], ...]:
        """What holds across every step; with `weak`, across deviations too."""
        properties: tuple[Callable[..., bool], ...] = self.module.STEP_PROPERTIES
        return getattr(self.module, "WEAK_STEP_PROPERTIES", properties) if weak else properties

    def allowed(self, profile: str) -> tuple[Deviation[Any], ...]:
        """The deviations that `profile` counts as anomalies."""
        return tuple(d for d in self.deviations if profile in d.profiles)

    def stand_ins(self, action: str, profile: str) -> tuple[Deviation[Any], ...]:
        """The deviations that `profile` allows in place of an action, in the order in which they are tried."""
        return tuple(d for d in self.allowed(profile) if d.instead_of is self.actions[action])

    def step(self, state: State, action: str, args: Mapping[str, int], profile: str) -> tuple[State, str | None]:
        """The next state, and the deviation that was needed to get there. Raises Refused."""
        wanted = [args[name] for name in self.parameters[action]]
        try:
            return self.actions[action](state, *wanted), None
        except Refused:
            for deviation in self.stand_ins(action, profile):
                try:
                    return deviation.step(state, *wanted), deviation.step.__name__
                except Refused:
                    continue
            raise


SPECS: Mapping[str, Spec] = {
    spec.name: spec
    for spec in map(
        Spec,
        (log, queue, dispatch, ring, transaction, checkpoint, op_batch, half_cache, coordinator, permits, broker),
    )
}
PROFILES = ("strict", "rocketmq", "pulsar")


def rule_id(spec: str, because: str) -> str:
    """The id of a rule: its spec, and its sentence with hyphens, a leading article and apostrophes dropped."""
    words = re.findall(r"[a-z0-9]+", because.lower().replace("'", ""))
    return f"{spec}/{'-'.join(words[1:] if words[0] in ('the', 'a', 'an') else words)}"
