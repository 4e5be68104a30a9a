"""Maps as readers see them that know no number: where a Map began, and what a step did to it since, in order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, eq=False)
class Put:
    """A Map's effect: `value` at `key`."""

    key: Any
    value: Any

    def reaches(self, key: Any) -> Any:
        """True if it changes what lies at `key`; where only the values can tell, the run forks."""
        return self.key == key


@dataclass(frozen=True, eq=False)
class Forget:
    """A Map's effect: its default from `low` on."""

    low: Any

    def reaches(self, key: Any) -> Any:
        """True if it changes what lies at `key`; where only the values can tell, the run forks."""
        return self.low is key or self.low <= key


Effect = Put | Forget


class Window(ABC):
    """A Map that began as the value of the field `field`, and the effects on it since.

    Reading after a write in the same step looks through the effects first, the last one before all. A Map that was
    stored into another field still says which field it began from.
    """

    def __init__(self, field: str, default: Any, *, empty: bool = False, effects: tuple[Effect, ...] = ()) -> None:
        self.field = field
        self.default = default
        self.empty = empty
        self.effects = effects

    def __getitem__(self, key: Any) -> Any:
        for effect in reversed(self.effects):
            if effect.reaches(key):
                return effect.value if isinstance(effect, Put) else self.default
        return self.default if self.empty else self.there(key)

    @abstractmethod
    def there(self, key: Any) -> Any:
        """The value at `key` before the effects."""

    @abstractmethod
    def like(self, *, empty: bool, effects: tuple[Effect, ...]) -> Self:
        """The same Map with other effects."""

    def set(self, *place: Any) -> Self:
        """The Map with one more write: at a key, or at two, a value."""
        *key, value = place
        return self._then(Put(key[0] if len(key) == 1 else tuple(key), value))

    def forget_from(self, low: Any) -> Self:
        """The Map with its default from `low` on, until something is written there again."""
        return self._then(Forget(low))

    def cleared(self) -> Self:
        """The Map emptied, and all writes before that forgotten."""
        return self.like(empty=True, effects=())

    def _then(self, effect: Effect) -> Self:
        return self.like(empty=self.empty, effects=(*self.effects, effect))
