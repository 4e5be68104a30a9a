"""The declaration of a class for its spec: what it lacks or misspells is found before the first run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from inspect import (
    Parameter,
    Signature,
    isasyncgenfunction,
    iscoroutinefunction,
    isgeneratorfunction,
    signature,
    unwrap,
)
from typing import Any

from gapless.properties.machines.contract import BrokenContract, made, name_of, not_made, refusals
from gapless.spec.catalog import Spec
from gapless.traces.suggestions import did_you_mean, nearest, one_of

REASONS = {"absent": '"expire": "time is not simulated"', "unknown": '"clock": "it has none"'}
"""The attributes that name what a class lacks, each with an example of an entry."""


class Declaration:
    """A class as it is, or one object of a function that makes them: which methods it has, and what it says of itself.

    `called`: the name of the class · `steps`: the steps of the spec that it has.
    """

    def __init__(self, make: Any) -> None:
        self.shown = _shown(make)
        self.kind: type = self.shown if isinstance(self.shown, type) else type(self.shown)
        self.called = self.kind.__name__
        self.steps: tuple[str, ...] = ()

    def require(self, spec: Spec, rare: Collection[str]) -> None:
        """Raise BrokenContract unless the class has what a machine for the spec needs."""
        names = tuple(action.__name__ for action in spec.module.ACTIONS)
        if isinstance(rare, str):
            raise BrokenContract(f'rare is {rare!r}: write rare=["{rare}"]')
        self._require_reasons("unknown", [*spec.scalars, *spec.maps], "field", spec)
        self._require_reasons("absent", names, "step", spec)
        _require_known(rare, names, f"{spec.name} has no step", "")
        self.steps = tuple(name for name in names if name not in getattr(self.shown, "absent", {}))
        self._require_names(self.steps)
        for name in (*self.steps, "as_spec"):
            self._require_run(name)
        for name in self.steps:
            self._require_parameters(name, spec.parameters[name])
        if not isinstance(getattr(self.shown, "refused", None), property):
            refusals(self.shown)

    def _require_reasons(self, attribute: str, known: Collection[str], kind: str, spec: Spec) -> None:
        """Raise BrokenContract unless `absent` or `unknown` is a dict of known names with reasons."""
        given = getattr(self.shown, attribute, {})
        if isinstance(given, property):
            return
        if not isinstance(given, Mapping) or not all(isinstance(why, str) and why for why in given.values()):
            raise BrokenContract(
                f"{self.called}.{attribute} is {given!r}: expected a dict of each {kind} and the reason, such as "
                f"{attribute} = {{{REASONS[attribute]}}}"
            )
        where = "State of " if kind == "field" else ""
        _require_known(given, known, f"{where}{spec.name} has no {kind}", f", named in {self.called}.{attribute}")

    def _require_names(self, steps: Collection[str]) -> None:
        """Raise BrokenContract unless the class has a method for each step, `as_spec` and `refused`."""
        needed = (*steps, "as_spec", "refused")
        lacking = [name for name in needed if not hasattr(self.shown, name)]
        if not lacking:
            return
        own = [name for name in dir(self.shown) if not name.startswith("_") and name not in needed]
        advice = [f"rename {found[0]} to {name}, if it is meant" for name in lacking if (found := nearest(name, own))]
        if not advice:
            advice = ["define it"] if len(lacking) == 1 else ["define them"]
            if of_steps := [name for name in lacking if name in steps]:
                advice.append(f"or say in `absent` why there is no step {one_of(of_steps)}")
        raise BrokenContract(f"{self.called} has no {', '.join(lacking)}: {', '.join(advice)}")

    def _require_run(self, name: str) -> None:
        """Raise BrokenContract where a call of a method would not run it."""
        method = getattr(self.shown, name)
        if not callable(method):
            raise BrokenContract(f"{self.called}.{name} is a {type(method).__name__}: expected a method")
        function = unwrap(method)
        if iscoroutinefunction(function) or isasyncgenfunction(function):
            raise BrokenContract(
                f"{self.called}.{name} is `async def`: give a method that runs it, as by asyncio.run(…) in its body"
            )
        if isgeneratorfunction(function):
            raise BrokenContract(f"{self.called}.{name} has a `yield`, so that a call runs nothing of it: leave it out")

    def _require_parameters(self, name: str, wanted: tuple[str, ...]) -> None:
        """Raise BrokenContract unless a method takes the arguments of its step by their names."""
        try:
            found = signature(getattr(self.shown, name))
        except (TypeError, ValueError):
            return  # of C, or made by a program: the first call shows it
        if not _takes(found, wanted, bound=not isinstance(self.shown, type)):
            own = [one for one in found.parameters if one != "self"]
            raise BrokenContract(
                f"{self.called}.{name} takes ({', '.join(own)}): expected ({', '.join(wanted)}), for it is called "
                "with the arguments of the step by their names"
            )


def _takes(found: Signature, wanted: tuple[str, ...], *, bound: bool) -> bool:
    """True if a method can be called with these names; one of a class that is not `bound` takes the object first."""
    own = found.parameters.values()
    first = [one for one in own if one.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)][:1]
    given = [object()] if first and not bound and first[0].name not in wanted else []
    try:
        found.bind(*given, **dict.fromkeys(wanted, 0))
    except TypeError:
        return False
    return True


def _require_known(given: Collection[str], known: Collection[str], what: str, where: str) -> None:
    """Raise BrokenContract unless all names are known."""
    if strange := sorted(str(name) for name in given if name not in known):
        raise BrokenContract(
            f"{what} {', '.join(strange)}{did_you_mean(strange[0], known)}{where}: expected some of {', '.join(known)}"
        )


def _shown(make: Any) -> Any:
    """A class, or one object that a function makes. Raises BrokenContract where it is neither."""
    if isinstance(make, type):
        _require_no_arguments(make)
        return make
    if not callable(make) or hasattr(make, "as_spec"):
        raise BrokenContract(_no_class(make))
    if iscoroutinefunction(unwrap(make)):
        raise BrokenContract(f"{name_of(make)} is `async def`: give a function that returns the object")
    _require_no_arguments(make)
    one = made(make)
    if callable(close := getattr(one, "close", None)):
        close()
    return one


def _no_class(given: Any) -> str:
    """The sentence for what makes no objects."""
    if given is None or isinstance(given, str | int | list | tuple | dict):
        return f"the class of an implementation is {given!r}: give the class itself, as in machine_for(SPEC, Adapter)"
    called = type(given).__name__
    return f"machine_for has an object of {called}: give the class, not an object, as in machine_for(…, {called})"


def _require_no_arguments(make: Callable[..., Any]) -> None:
    """Raise BrokenContract where a call without arguments is refused by its signature."""
    try:
        found = signature(make)
    except (TypeError, ValueError):
        return  # of C: the first call shows it
    try:
        found.bind()
    except TypeError as error:
        raise BrokenContract(not_made(make, error)) from None
