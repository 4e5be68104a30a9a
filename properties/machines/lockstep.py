"""An implementation and its model, step by step: both take a step and come to the same state, or both refuse it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from gapless.properties.machines.mismatch import Mismatch
from gapless.spec.catalog import Spec, State
from gapless.spec.language import ASSUMED, Map, Refused
from gapless.traces.replay.exact import Event, call, named
from gapless.traces.replay.notation import breach, changes, changes_text, column, consequence

STORY = "gapless_story"
"""The attribute of an exception of the implementation that holds its story; it is among its notes, too."""


class StepMismatch(Mismatch):
    """Where they differ, as a story.

    `kind`: in which way; a shorter story that ends in the same way tells of the same fault · `offered`: the steps, the
    last of which shows it.
    """

    def __init__(self, text: str, kind: tuple[str, ...], offered: Sequence[Event]) -> None:
        super().__init__(text)
        self.kind = kind
        self.offered = tuple(offered)


class Lockstep:
    """One life of both. `make`: the implementation's class; `spec_machine.py` says what it has."""

    def __init__(self, spec: Spec, make: Callable[[], Any], profile: str) -> None:
        self.spec = spec
        self.profile = profile
        self.subject = make()
        self.refused: tuple[type[Exception], ...] = tuple(self.subject.refused)
        self.model: State = spec.initial
        self.offered: list[Event] = []
        self.story: list[tuple[str, str]] = []
        self._compare("before the first step")

    def offer(self, step: Event) -> bool | None:
        """Whether both took the step, None where it was not offered: the environment does what the spec assumes.

        Raises StepMismatch; and what the implementation raises that is no refusal, with the story as a note.
        """
        name, args = step[0], named(self.spec, step)
        refusal: Refused | None = None
        before = self.model
        try:
            self.model, _ = self.spec.step(before, name, args, self.profile)
        except Refused as refused:
            if refused.rule == ASSUMED:
                return None
            refusal = refused
        self.offered.append(step)
        flags = self.spec.flags[name]
        try:
            getattr(self.subject, name)(**{a: bool(value) if a in flags else value for a, value in args.items()})
        except self.refused as error:
            if refusal is None:
                why = f"the spec takes it, and {self.called} refuses: {error}"
                raise self._departs(step, why, ("refuses", name)) from error
        except Exception as error:
            story = self._story_of(step, f"{self.called} raises {type(error).__name__}, which is no refusal")
            setattr(error, STORY, story)
            error.add_note(story)
            raise
        else:
            if refusal is not None:
                needs = [f"{breach(name, refusal.because)}.", *consequence(refusal.otherwise)]
                why = f"not allowed, and {self.called} takes it"
                raise self._departs(step, why, ("takes", name, refusal.rule), *needs)
        self.story.append(
            (call(self.spec, step), "both refuse" if refusal else changes_text(changes(before, self.model)))
        )
        self._compare("behind the last step")
        return refusal is None

    def close(self) -> None:
        """The implementation is closed, if it can be."""
        if callable(close := getattr(self.subject, "close", None)):
            close()

    @property
    def called(self) -> str:
        """The name of the implementation."""
        return type(self.subject).__name__

    def _compare(self, when: str) -> None:
        """The state that the implementation tells is the model's. Raises StepMismatch."""
        found = self.subject.as_spec()
        if is_dataclass(found):
            found = {f.name: getattr(found, f.name) for f in fields(found)}
        names = {*self.spec.scalars, *self.spec.maps} - getattr(self.subject, "unknown", {}).keys()
        if strange := sorted(found.keys() ^ names):
            raise TypeError(
                f"{self.called}.as_spec tells {', '.join(sorted(found))}: expected every field of the state but those "
                f"in `unknown`; {', '.join(strange)} is one too many, or missing"
            )
        mine = dict(_elements({name: getattr(self.model, name) for name in names}, self.model))
        theirs = dict(_elements({name: found[name] for name in names}, self.model))
        if differ := sorted(name for name in {*mine, *theirs} if mine.get(name) != theirs.get(name)):
            lines = [self._head(), *_lines(self.story), "", f"Not the same state {when}:"]
            for name in differ:
                default = _default(self.model, name)
                lines.append(
                    f"{name}: the spec has {mine.get(name, default)}, {self.called} {theirs.get(name, default)}."
                )
            raise StepMismatch("\n".join(lines), ("state", differ[0].partition("[")[0]), self.offered)

    def _head(self) -> str:
        return f"{self.called} departs from {self.spec.called}.\n"

    def _departs(self, step: Event, why: str, kind: tuple[str, ...], *more: str) -> StepMismatch:
        text = "\n".join([self._head(), self._story_of(step, why), *(["", *more] if more else [])])
        return StepMismatch(text, kind, self.offered)

    def _story_of(self, step: Event, why: str) -> str:
        """The story up to a step."""
        return "\n".join(_lines([*self.story, (call(self.spec, step), why)]))


def _lines(steps: Sequence[tuple[str, str]]) -> list[str]:
    """Steps, and what became of each, as reports have them."""
    width = column(steps)
    return [f"{n:>3}. {text:<{width}}   {what}" for n, (text, what) in enumerate(steps, 1)]


def _elements(values: Mapping[str, Any], like: State) -> Iterator[tuple[str, int]]:
    """Values by field or FIELD[KEY], defaults of Maps left out."""
    for name, value in values.items():
        kept = getattr(like, name)
        if isinstance(kept, Map):
            entries = value.entries if isinstance(value, Map) else value
            yield from ((f"{name}[{int(key)}]", int(one)) for key, one in entries.items() if one != kept.default)
        else:
            yield name, int(value)


def _default(state: State, name: str) -> int:
    """What a Map has where nothing was written."""
    kept = getattr(state, name.partition("[")[0])
    return int(kept.default) if isinstance(kept, Map) else int(kept)


def shortest(spec: Spec, make: Callable[[], Any], profile: str, found: StepMismatch) -> StepMismatch:
    """The shortest story of the same kind that leaving out steps soon leads to."""
    kept, size = found, len(found.offered) // 2
    while size:
        at = 0
        while at < len(kept.offered) - 1:
            fewer = kept.offered[:at] + kept.offered[at + size :]
            again = _first_mismatch(spec, make, profile, fewer)
            if again is not None and again.kind == found.kind:
                kept = again
            else:
                at += size
        size //= 2
    return kept


def _first_mismatch(spec: Spec, make: Callable[[], Any], profile: str, offers: Sequence[Event]) -> StepMismatch | None:
    """Where both differ in these steps."""
    both = Lockstep(spec, make, profile)
    try:
        for step in offers:
            both.offer(step)
    except StepMismatch as found:
        return found
    except Exception:  # noqa: BLE001 - another fault than the one that is looked for
        return None
    finally:
        both.close()
    return None
