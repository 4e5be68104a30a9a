"""The contract of an implementation that runs in lockstep with a spec: a method for each step, and `as_spec`.

Each complaint names the class, the method, the values as they are, and the form that was expected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from gapless.spec.catalog import Spec, State
from gapless.spec.language import Map
from gapless.spec.reading.map_keys import element
from gapless.traces.suggestions import did_you_mean, nearest


class BrokenContract(TypeError):  # noqa: N818 - its name is what it finds.
    """A class that cannot run in lockstep with a spec."""

    __module__ = "gapless"  # where users find it, and short in the summary of a test run


def made(make: Callable[[], Any]) -> Any:
    """A new implementation. Raises BrokenContract where it cannot be made without arguments."""
    try:
        return make()
    except TypeError as error:
        if error.__traceback__ is None or error.__traceback__.tb_next is not None:  # it was called, and then failed
            raise
        raise BrokenContract(not_made(make, error)) from None


def not_made(make: Callable[[], Any], error: TypeError) -> str:
    """The sentence for a class or function that needs arguments."""
    called = name_of(make)
    if isinstance(make, type):
        return (
            f"{called} is made by calling {called}(): {error}: give `machine_for` a function that makes one, such as "
            f"`lambda: {called}(…)`"
        )
    return f"{called} is called without arguments: {error}: give `machine_for` a function that needs none"


def name_of(make: Any) -> str:
    """The name of a class or function."""
    return str(getattr(make, "__name__", type(make).__name__))


def refusals(subject: Any) -> tuple[type[Exception], ...]:
    """The exceptions with which an implementation refuses a step. Raises BrokenContract."""
    called = name_of(subject)
    given = getattr(subject, "refused", None)
    found = given if isinstance(given, tuple | list) else (given,)
    if Exception in found:
        raise BrokenContract(
            f"{called}.refused names Exception, which a bug raises too (as KeyError or TypeError): "
            "name the exceptions of a refusal alone, such as `refused = (QueueError,)`"
        )
    if all(isinstance(one, type) and issubclass(one, Exception) for one in found):
        return tuple(found)
    raise BrokenContract(
        f"{called}.refused is {given!r}: expected the exceptions that it raises where it refuses a "
        "step, such as `refused = (QueueError,)`"
    )


def state_of(subject: Any, spec: Spec, like: State) -> dict[str, int]:
    """The values of `as_spec` by field or FIELD[KEY], defaults of Maps left out. Raises BrokenContract."""
    called = f"{type(subject).__name__}.as_spec"
    found = subject.as_spec()
    if is_dataclass(found) and not isinstance(found, type):
        found = {one.name: getattr(found, one.name) for one in fields(found)}
    wanted = {*spec.scalars, *spec.maps} - getattr(subject, "unknown", {}).keys()
    if not isinstance(found, Mapping):
        raise BrokenContract(f"{called} returns {found!r}: expected a dict of {', '.join(_in_order(wanted, spec))}")
    _require_fields(found, wanted, spec, called)
    return dict(_elements({name: found[name] for name in wanted}, like, called))


def _require_fields(found: Mapping[Any, Any], wanted: set[str], spec: Spec, called: str) -> None:
    """Raise BrokenContract unless a state has the fields that are wanted, and no other."""
    missing, foreign = wanted - found.keys(), sorted(str(name) for name in found if name not in wanted)
    if both := [name for name in foreign if name in {*spec.scalars, *spec.maps}]:
        raise BrokenContract(f"{called}: {', '.join(both)} is in `unknown`, too: leave it out there, or here")
    if not missing and not foreign:
        return
    meant = {name for one in foreign for name in nearest(one, missing)}
    parts = [f"missing: {', '.join(_in_order(missing, spec))}"] * bool(missing)
    strange = ", ".join(f"{one}{did_you_mean(one, missing)}" for one in foreign)
    parts += [f"not a field of State: {strange}"] * bool(foreign)
    also = " (or name it in `unknown`, and why)" if missing - meant else ""
    raise BrokenContract(f"{called}: {'; '.join(parts)}{also}")


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
                parts = key if isinstance(key, tuple) else (key,)
                place = element(name, tuple(_number(part, f"{called}: a key of {name}") for part in parts))
                yield place, _number(one, f"{called}: {place}")


def _number(value: Any, what: str) -> int:
    try:
        if not isinstance(value, float) and value == int(value):
            return int(value)
    except (TypeError, ValueError, OverflowError):
        pass
    wanted = "a whole number, a flag or a member of an IntEnum"
    if value is None:
        wanted += "; write what the spec has for none, such as -1, or name the field in `unknown`, and why"
    raise BrokenContract(f"{what} is {value!r}: expected {wanted}")
