"""The contract of an implementation that runs in lockstep with a spec: a method for each step, and `as_spec`.

Each complaint names the class, the method, the values as they are, and the form that was expected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from inspect import Parameter, Signature, signature
from typing import Any

from gapless.spec.catalog import Spec, State
from gapless.spec.language import Map


class BrokenContract(TypeError):  # noqa: N818 - its name is what it finds.
    """A class that cannot run in lockstep with a spec."""


def made(make: Callable[[], Any]) -> Any:
    """A new implementation. Raises BrokenContract where it cannot be made without arguments."""
    called = name_of(make)
    try:
        return make()
    except TypeError as error:
        if error.__traceback__ is None or error.__traceback__.tb_next is not None:  # it was called, and then failed
            raise
        raise BrokenContract(
            f"{called} is made by calling {called}(): {error}: give `machine_for` a function that makes one, such as "
            f"`lambda: {called}(…)` with `as_spec` and the steps on what it returns"
        ) from None


def name_of(make: Any) -> str:
    """The name of a class or function."""
    return str(getattr(make, "__name__", type(make).__name__))


def refusals(subject: Any) -> tuple[type[Exception], ...]:
    """The exceptions with which an implementation refuses a step. Raises BrokenContract."""
    given = getattr(subject, "refused", None)
    found = given if isinstance(given, tuple | list) else (given,)
    if all(isinstance(one, type) and issubclass(one, Exception) for one in found):
        return tuple(found)
    raise BrokenContract(
        f"{type(subject).__name__}.refused is {given!r}: expected the exceptions that it raises where it refuses a "
        "step, such as `refused = (QueueError,)`"
    )


def require_parameters(spec: Spec, make: Any, name: str) -> None:
    """Raise BrokenContract unless a method takes the arguments of its step by their names."""
    method = getattr(make, name, None)
    wanted = spec.parameters[name]
    try:
        found = signature(method) if callable(method) else None
    except (TypeError, ValueError):
        return  # of C, or made by a program: the first call shows it
    if found is not None and isinstance(make, type) and not _takes(found, wanted):
        own = [one for one in found.parameters if one != "self"]
        raise BrokenContract(
            f"{name_of(make)}.{name} takes ({', '.join(own)}): expected ({', '.join(wanted)}), for it is called with "
            "the arguments of the step by their names"
        )


def _takes(found: Signature, wanted: tuple[str, ...]) -> bool:
    """True if a method can be called with these names."""
    own = found.parameters.values()
    first = [one for one in own if one.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)][:1]
    given = [object()] if first and first[0].name not in wanted else []
    try:
        found.bind(*given, **dict.fromkeys(wanted, 0))
    except TypeError:
        return False
    return True


def state_of(subject: Any, spec: Spec, like: State) -> dict[str, int]:
    """The values of `as_spec` by field or FIELD[KEY], defaults of Maps left out. Raises BrokenContract."""
    called = f"{type(subject).__name__}.as_spec"
    found = subject.as_spec()
    if is_dataclass(found) and not isinstance(found, type):
        found = {one.name: getattr(found, one.name) for one in fields(found)}
    wanted = {*spec.scalars, *spec.maps} - getattr(subject, "unknown", {}).keys()
    if not isinstance(found, Mapping):
        raise BrokenContract(f"{called} returns {found!r}: expected a dict of {', '.join(_in_order(wanted, spec))}")
    missing, foreign = wanted - found.keys(), [str(name) for name in found if name not in wanted]
    if missing or foreign:
        parts = [f"missing: {', '.join(_in_order(missing, spec))}"] * bool(missing)
        parts += [f"not a field of State: {', '.join(sorted(foreign))}"] * bool(foreign)
        also = " (or name it in `unknown`, and why)" if missing else ""
        raise BrokenContract(f"{called}: {'; '.join(parts)}{also}")
    return dict(_elements({name: found[name] for name in wanted}, like, called))


def _in_order(names: set[str], spec: Spec) -> list[str]:
    return [name for name in (one.name for one in fields(spec.initial)) if name in names]


def elements(state: State, names: set[str]) -> dict[str, int]:
    """The values of a state by field or FIELD[KEY], defaults of Maps left out."""
    return dict(_elements({name: getattr(state, name) for name in names}, state, type(state).__name__))


def _elements(values: Mapping[str, Any], like: State, called: str) -> Iterator[tuple[str, int]]:
    for name, value in values.items():
        kept = getattr(like, name)
        if not isinstance(kept, Map):
            yield name, _number(value, f"{called}: {name}")
            continue
        entries = value.entries if isinstance(value, Map) else value
        if not isinstance(entries, Mapping):
            raise BrokenContract(
                f"{called}: {name} is {value!r}: expected a dict of the keys whose value is not {int(kept.default)}"
            )
        for key, one in entries.items():
            if one != kept.default:
                place = f"{name}[{_number(key, f'{called}: a key of {name}')}]"
                yield place, _number(one, f"{called}: {place}")


def _number(value: Any, what: str) -> int:
    try:
        if value == int(value):
            return int(value)
    except (TypeError, ValueError):
        pass
    raise BrokenContract(f"{what} is {value!r}: expected a whole number, a flag or a member of an IntEnum")
