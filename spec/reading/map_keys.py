"""The number of keys of the Maps of a state, which only its annotations tell."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from gapless.spec.language import Map


def key_counts(state: Any) -> Mapping[str, int]:
    """The number of keys of each Map of a type of state, by the field's name: 1 or 2."""
    return _key_counts(state)


@cache
def _key_counts(state: Any) -> Mapping[str, int]:
    hints = get_type_hints(state)
    return {name: key_count(hint) for name, hint in hints.items() if get_origin(hint) is Map}


def key_count(hint: Any) -> int:
    """The number of keys of a type of Map."""
    return max(len(get_args(hint)) - 1, 1)


def numbers_of(key: Any) -> tuple[int, ...]:
    """The numbers that a key of a Map is made of."""
    return tuple(map(int, key)) if isinstance(key, tuple) else (int(key),)


def element(name: str, key: Any) -> str:
    """The name of an element of a Map: `sizes[3]`, `votes[1, 2]`."""
    return f"{name}[{', '.join(map(str, numbers_of(key)))}]"
