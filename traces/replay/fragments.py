"""Fragments of source code in place of values: what the kernel compiler runs a spec's functions on."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from gapless.spec import forking

ARGUMENT = "an argument of the event"

Reads = frozenset[tuple[str, str]]
"""What a fragment looks at: (name, key). The key is `ARGUMENT` for an argument, empty for an integer field, and for a
Map the source of the key that is looked up."""


NOTHING: Reads = frozenset()


class Code:
    """A value known only as a piece of source, and what that source reads."""

    __slots__ = ("reads", "text")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, text: str, reads: Reads = NOTHING) -> None:
        self.text = text
        self.reads = reads

    def __bool__(self) -> bool:
        return forking.decide(self)


SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip


def text_of(value: Any) -> str:
    """The value as source code."""
    return value.text if isinstance(value, Code) else repr(int(value))


def reads_of(*values: Any) -> Reads:
    """What the fragments among the values look at."""
    found: Reads = NOTHING
    for value in values:
        if isinstance(value, Code) and value.reads is not found:
            found = found | value.reads if found else value.reads
    return found


def _overloaded(sign: str) -> Iterator[Callable[[Any, Any], Code]]:
    yield lambda a, b: Code(f"({text_of(a)} {sign} {text_of(b)})", reads_of(a, b))
    yield lambda a, b: Code(f"({text_of(b)} {sign} {text_of(a)})", reads_of(a, b))


zero_asked_about: ContextVar[bool] = ContextVar("zero_asked_about", default=False)
"""Whether what divides asks first if it divides by 0, and raises ZeroDivisionError there, as numbers do."""


def _dividing(divided: Callable[[Any, Any], Code], by: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Code]:
    def operation(a: Any, b: Any) -> Code:
        if zero_asked_about.get() and by(a, b) == 0:
            raise ZeroDivisionError
        return divided(a, b)

    return operation


def _equal(a: Code, b: Any) -> Code | bool:
    """What is written alike is equal: no question, and no answer that can never be given."""
    return True if text_of(a) == text_of(b) else Code(f"({text_of(a)} == {text_of(b)})", reads_of(a, b))


for _name, _sign in SIGNS.items():
    _forward, _reflected = _overloaded(_sign)
    if _sign in {"//", "%"}:
        _forward, _reflected = _dividing(_forward, lambda _, b: b), _dividing(_reflected, lambda a, _: a)
    setattr(Code, f"__{_name}__", _forward)
    if hasattr(operator, f"i{_name}"):
        setattr(Code, f"__r{_name}__", _reflected)
Code.__eq__ = _equal  # type: ignore[assignment,method-assign]


@dataclass(frozen=True)
class Put:
    """A Map's effect: `value` at `key`."""

    key: Any
    value: Any

    def reaches(self, key: Any) -> Any:
        """Whether it changes what lies at `key`; where only the values can tell, the run forks."""
        return self.key == key

    def source(self, window: Window, keep: Callable[[Any], str]) -> str:
        """The statement, with operands computed by then; what lies outside the window goes to exact replay."""
        place = f"{keep(self.key)} - origin"
        return f"put(windows, {place}, width, {window.column}, {window.default}, {keep(self.value)}, escape)"


@dataclass(frozen=True)
class Forget:
    """A Map's effect: its default from `low` on."""

    low: Any

    def reaches(self, key: Any) -> Any:
        """Whether it changes what lies at `key`; where only the values can tell, the run forks."""
        return text_of(self.low) == text_of(key) or self.low <= key

    def source(self, window: Window, keep: Callable[[Any], str]) -> str:
        """The statement, with its operand computed by then."""
        return f"forget(windows, {keep(self.low)} - origin, width, {window.column}, {window.default})"


class Window:
    """A Map as a column of an array: `[key - origin, column]` inside the window, the default outside of it.

    Effects are kept in order; reading after a write in the same step looks through them first, the last one before all.
    """

    def __init__(
        self, column: int, field: str, default: int, *, empty: bool = False, effects: tuple[Put | Forget, ...] = ()
    ) -> None:
        self.column = column
        self.field = field
        self.default = default
        self.empty = empty
        self.effects = effects

    def __getitem__(self, key: Any) -> Any:
        for effect in reversed(self.effects):
            if effect.reaches(key):
                return effect.value if isinstance(effect, Put) else self.default
        return self.default if self.empty else self.there(key)

    def there(self, key: Any) -> Any:
        """What lay at `key` before the step."""
        where = text_of(key)
        return Code(
            f"at(windows, {where} - origin, width, {self.column}, {self.default})",
            reads_of(key) | {(self.field, where)},
        )

    def set(self, key: Any, value: Any) -> Window:
        """One more write, kept for the effect."""
        return self._then(Put(key, value))

    def forget_from(self, low: Any) -> Window:
        """The window with its default from `low` on, until something is written there again."""
        return self._then(Forget(low))

    def cleared(self) -> Window:
        """The window emptied, and all writes before that forgotten."""
        return self.like(empty=True, effects=())

    def _then(self, effect: Put | Forget) -> Window:
        return self.like(empty=self.empty, effects=(*self.effects, effect))

    def like(self, *, empty: bool, effects: tuple[Put | Forget, ...]) -> Window:
        """The same Map with other effects."""
        return Window(self.column, self.field, self.default, empty=empty, effects=effects)
