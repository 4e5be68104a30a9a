"""Planting a fault in the implementation: for a while, another function or class stands in place of one of `impl/`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class InjectedFault:
    """A fault that can be planted. `breaks`: what goes wrong · `like`: its code in docs/defects.md, where one fits."""

    name: str
    breaks: str
    like: str | None
    planted: Callable[[], AbstractContextManager[None]]


class Faults(list[InjectedFault]):
    """The faults of one module, in the order in which they are written there."""

    def plant(self, name: str, owner: object, attribute: str, like: str | None = None) -> Callable[[T], T]:
        """A decorator: what follows can be planted in place of `owner.attribute`; its docstring says what breaks."""

        def add(value: T) -> T:
            is_property = isinstance(getattr(owner, attribute, None), property)
            put = property(value) if is_property else value  # type: ignore[arg-type]
            self.append(InjectedFault(name, str(value.__doc__), like, partial(replacing, owner, attribute, put)))
            return value

        return add


@contextmanager
def replacing(owner: object, attribute: str, value: object) -> Iterator[None]:
    """Replace the attribute of a class or a module for a while."""
    missing = object()
    before = vars(owner).get(attribute, missing)
    setattr(owner, attribute, value)
    try:
        yield
    finally:
        if before is missing:
            delattr(owner, attribute)
        else:
            setattr(owner, attribute, before)
