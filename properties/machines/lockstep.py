"""An implementation and its model, step by step: both take a step and come to the same state, or both refuse it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import isawaitable, iscoroutine
from typing import Any

from gapless.properties.machines.contract import BrokenContract, elements, made, refusals, state_of
from gapless.properties.machines.mismatch import Mismatch
from gapless.spec.catalog import Spec, State
from gapless.spec.language import ASSUMED, Map, Refused
from gapless.traces.replay.exact import Event, call, named
from gapless.traces.replay.notation import breach, changes, changes_text, column, consequence, of_field

STORY = "gapless_story"
"""The attribute of an exception of the implementation that holds its story; it is among its notes, too."""


class StepMismatch(Mismatch):
    """The story of a difference.

    `kind`: in which way; a shorter story that ends in the same way tells of the same fault · `offered`: the steps, the
    last of which shows it.
    """

    __module__ = "gapless"  # where users find it, and short in the summary of a test run

    def __init__(self, text: str, kind: tuple[str, ...], offered: Sequence[Event]) -> None:
        super().__init__(text)
        self.kind = kind
        self.offered = tuple(offered)


class Lockstep:
    """One life of both. `make`: the implementation's class; `spec_machine.py` says what it has."""

    def __init__(self, spec: Spec, make: Callable[[], Any], profile: str) -> None:
        self.spec = spec
        self.profile = profile
        self.subject = made(make)
        self.refused = refusals(self.subject)
        self.model: State = spec.initial
        self.offered: list[Event] = []
        self.story: list[tuple[str, str]] = []
        self._compare("before the first step")

    def offer(self, step: Event) -> bool | None:
        """True if both took the step; None where the environment breaks an assumption, so that it was not offered.

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
        answer: Any = None
        try:
            answer = getattr(self.subject, name)(
                **{a: bool(value) if a in flags else value for a, value in args.items()}
            )
        except self.refused as error:
            if refusal is None:
                why = f"the spec takes it, and {self.called} refuses: {_text_of(error)}"
                head = f"{name} is refused, and the spec takes it"
                raise self._departs(step, why, ("refuses", name), head) from error
        except Exception as error:
            story = self._story_of(step, f"{self.called} raises {type(error).__name__}, which is no refusal")
            setattr(error, STORY, story)
            error.add_note(story)
            raise
        else:
            _require_done(answer, f"{self.called}.{name}")
            if refusal is not None:
                needs = [
                    f"{breach(name, refusal.because)}.",
                    *consequence(refusal.otherwise),
                    *_no_refusal(name, answer),
                ]
                why = f"not allowed, and {self.called} takes it"
                raise self._departs(step, why, ("takes", name, refusal.rule), breach(name, refusal.because), *needs)
        self.story.append(
            (call(self.spec, step), "both refuse" if refusal else changes_text(changes(before, self.model)))
        )
        self._compare("behind the last step", *(() if refusal else _no_refusal(name, answer)))
        return refusal is None

    def close(self) -> None:
        """The implementation is closed, if it can be."""
        if callable(close := getattr(self.subject, "close", None)):
            close()

    @property
    def called(self) -> str:
        """The name of the implementation."""
        return type(self.subject).__name__

    def _compare(self, when: str, *more: str) -> None:
        """The state that the implementation tells is the model's. Raises StepMismatch."""
        theirs = state_of(self.subject, self.spec, self.model)
        names = {*self.spec.scalars, *self.spec.maps} - getattr(self.subject, "unknown", {}).keys()
        mine = elements(self.model, names)
        if differ := sorted(name for name in {*mine, *theirs} if mine.get(name) != theirs.get(name)):
            place = f"after {self.offered[-1][0]}" if self.offered else when
            head = f"{differ[0]} is not the same {place}"
            lines = [self._head(head), *_lines(self.story), "", f"Not the same state {when}:"]
            for name in differ:
                own, other = (self._value(name, values) for values in (mine, theirs))
                lines.append(f"{name}: the spec has {own}, {self.called} has {other}.")
            lines += more
            raise StepMismatch("\n".join(lines), ("state", differ[0].partition("[")[0]), self.offered)

    def _value(self, name: str, values: Mapping[str, int]) -> int | str:
        """The value of a field or FIELD[KEY], by its name if it has one."""
        return of_field(self.model, name.partition("[")[0], values.get(name, _default(self.model, name)))

    def _head(self, found: str) -> str:
        """The first line, which is all that the summary of a test run shows."""
        return f"{found}: {self.called} departs from {self.spec.called}.\n"

    def _departs(self, step: Event, why: str, kind: tuple[str, ...], found: str, *more: str) -> StepMismatch:
        text = "\n".join([self._head(found), self._story_of(step, why), *(["", *more] if more else [])])
        return StepMismatch(text, kind, self.offered)

    def _story_of(self, step: Event, why: str) -> str:
        """The story up to a step."""
        return "\n".join(_lines([*self.story, (call(self.spec, step), why)]))


def _text_of(error: Exception) -> str:
    """The text of an exception; with its class where the text alone says little."""
    text = str(error)
    return text if " " in text.strip() else f"{type(error).__name__}{': ' * bool(text)}{text}"


def _require_done(answer: Any, called: str) -> None:
    """Raise BrokenContract where a method returns what has not run yet."""
    if isawaitable(answer):
        if iscoroutine(answer):
            answer.close()  # so that Python does not warn of it, too
        raise BrokenContract(f"{called} must be awaited: give a method that runs it, as by asyncio.run(…)")


def _no_refusal(name: str, answer: Any) -> list[str]:
    """The line for a method that returns its refusal."""
    refusal = answer is False or isinstance(answer, BaseException)
    return [
        f"{name} returned {answer!r}: a refusal is one of the exceptions in `refused`, and must be raised."
    ] * refusal


def _lines(steps: Sequence[tuple[str, str]]) -> list[str]:
    """Steps, and what became of each, as reports have them."""
    width = column(steps)
    return [f"{n:>3}. {text:<{width}}   {what}" for n, (text, what) in enumerate(steps, 1)]


def _default(state: State, name: str) -> int:
    """The default of a Map, or the value of a number."""
    kept = getattr(state, name.partition("[")[0])
    return int(kept.default) if isinstance(kept, Map) else int(kept)


def shortest(spec: Spec, make: Callable[[], Any], profile: str, found: StepMismatch) -> StepMismatch:
    """The shortest story of the same kind to which smaller numbers and fewer steps soon lead."""
    kept, better = _fewer_steps(spec, make, profile, found), True
    while better:
        better = False
        for simpler in (*_counted_down(spec, kept.offered), *_smaller_numbers(spec, kept.offered)):
            again = _first_mismatch(spec, make, profile, simpler)
            if again is not None and again.kind == found.kind and _size(again.offered) < _size(kept.offered):
                kept, better = _fewer_steps(spec, make, profile, again), True
                break
    return kept


def _size(steps: Sequence[Event]) -> tuple[int, int]:
    """The number of steps, and how far their numbers are from 0; negative ones are odd, and count more."""
    return len(steps), sum(2 * abs(value) + (value < 0) for _, args in steps for value in args)


def _counted_down(spec: Spec, steps: Sequence[Event]) -> Iterator[list[Event]]:
    """Some steps left out, and the numbers of one argument behind them less by 1: they are often counted."""
    for size in range(min(len(steps), STRETCH), 0, -1):
        for at in range(len(steps) - size):
            for name in spec.arguments:
                before, behind = steps[:at], steps[at + size :]
                yield [*before, *(_with(spec, step, name, lambda value: value - 1) for step in behind)]


def _smaller_numbers(spec: Spec, steps: Sequence[Event]) -> Iterator[list[Event]]:
    """One number of an argument in place of another: what happens to the third message happens to the first."""
    for name in spec.arguments:
        numbers = {value for step in steps for own, value in named(spec, step).items() if own == name}
        for number in sorted(numbers, key=lambda one: (abs(one), one), reverse=True):
            for other in sorted(one for one in numbers | {0} if 0 <= one < abs(number)):
                yield [_with(spec, step, name, lambda value: other if value == number else value) for step in steps]  # noqa: B023 - called at once


def _with(spec: Spec, step: Event, name: str, change: Callable[[int], int]) -> Event:
    """A step with another number for one of its arguments."""
    return step[0], tuple(change(value) if own == name else value for own, value in named(spec, step).items())


STRETCH = 3  # steps that are left out at once where numbers are counted down


def _fewer_steps(spec: Spec, make: Callable[[], Any], profile: str, found: StepMismatch) -> StepMismatch:
    """The shortest story of the same kind to which leaving out steps leads."""
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
    """The first difference in these steps."""
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
