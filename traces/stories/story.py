"""A story: a few steps of one trace, and what is claims to become of each.

It is a file, `NAME.story`, and a person may write it by hand:

    gapless story 1
    spec: queue
    profile: rocketmq

      1. open(number=0, position=0)
      2. append(number=0, count=1, position=0, size=340, tag=0)   end 0 → 1, positions[0] 0 → 0
      3. index(number=0, position=9, size=340, tag=0)             not allowed

    index breaks the rule "the entry points at its message".

The result of a step stands after it. A step without one is allowed, and its changes are not compared.
`given: end = 7, positions[6] = 900` lets the story begin in another state: the initial one, except for these values.
The recorded outcome of a step, and the state after it, follow the call: `append(…) refused`,
`flush(…) unknown saw(end=4)`. Lines that begin with # are for people.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from inspect import signature
from pathlib import Path
from typing import Any

from gapless.spec.catalog import PROFILES, SPECS, STRICT, Spec, State
from gapless.spec.language import Map, replace
from gapless.traces.events.event import OUTCOMES
from gapless.traces.problems import shown
from gapless.traces.replay.notation import DEPARTING
from gapless.traces.replay.possible_states import TraceEvent
from gapless.traces.specs import load
from gapless.traces.stories import old_wording

FIRST_LINE = "gapless story 1"
SUFFIX = ".story"
STEP = re.compile(
    r"\s*\d+\.\s+(?P<action>\w+)\((?P<args>[^()]*)\)(?: at (?:line|row) \d+)?"
    rf"(?: (?P<outcome>{'|'.join(OUTCOMES)}))?(?: saw\((?P<saw>[^()]*)\))?(?:\s+(?P<becomes>\S.*))?"
)
NUMBERED = re.compile(r"\s*\d+\.")
BETWEEN = re.compile(r",(?![^\[]*\])")
"""The commas between pairs; those between two keys of a Map stand in brackets."""
GIVEN = re.compile(r"(?P<field>\w+)(?:\[(?P<key>-?\d+(?:, ?-?\d+)?)\])?")
LEFT_OUT = re.compile(r"Again: |[\d,]+ of [\d,]+ events .* (?:is|are) left out\.")
"""Lines at the end of a report's story that are not about its steps, also in the words of older reports."""


class NoStory(ValueError):  # noqa: N818 - it names a finding.
    """A file that is no story: the message names the file, the line and the problem."""


@dataclass(frozen=True)
class SpecFrom(Spec):
    """A spec that begins in another state."""

    begins: State = None

    @property
    def initial(self) -> State:
        """The state before the first step."""
        return self.begins


@dataclass(frozen=True)
class StoryLine:
    """A line of a story's file. `becomes`: the stated result of its step; after the steps, the whole line."""

    line: int
    becomes: str


@dataclass(frozen=True)
class Story:
    """Steps, and the stated results.

    `given`: values of the state that it begins in, by field or FIELD[KEY] · `claims`: of every step · `closing`: the
    lines after the steps.
    """

    spec: Spec
    profile: str
    steps: tuple[TraceEvent, ...]
    given: Mapping[str, int]
    claims: tuple[StoryLine, ...] = ()
    closing: tuple[StoryLine, ...] = ()

    @property
    def begun(self) -> Spec:
        """Return its spec, with the state that the story begins in."""
        if not self.given:
            return self.spec
        of = self.spec
        return SpecFrom(of.module, of.deviating, of.laws, state_with(of.initial, self.given))


def state_with(state: State, given: Mapping[str, int]) -> State:
    """Return the state, except for these values."""
    changed: dict[str, Any] = {}
    for name, value in given.items():
        field, _, key = name.partition("[")
        if key:
            kept = changed.get(field, getattr(state, field))
            changed[field] = kept.set(*map(int, key[:-1].split(",")), value)
        else:
            changed[field] = value
    return replace(state, **changed)


def is_story(path: Path) -> bool:
    """True if a file begins as a story does: other programs have files of this name, too."""
    if path.suffix != SUFFIX or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.readline(100).strip() == FIRST_LINE.encode()


def read(path: Path) -> Story:
    """Read the story in a file. Raises NoStory."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise NoStory(f"{shown(path)}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise NoStory(f"{shown(path)}: is no text in UTF-8 ({error.reason} at byte {error.start})") from None
    return parsed(text, path)


def parsed(text: str, path: Path) -> Story:
    """Parse the story in a text; a spec that it names by file is searched next to `path`. Raises NoStory."""
    return _Parser(text, path).story()


class _Parser:
    """Parses one file from its first line to its last."""

    def __init__(self, text: str, path: Path) -> None:
        self.path = path
        lines = text.rstrip().split("\n")
        self.lines = [(n, line.rstrip()) for n, line in enumerate(lines, 1) if not line.startswith("#")]

    def wrong(self, line: int, what: str) -> NoStory:
        return NoStory(f"{shown(self.path)}, line {line}: {shown(what)}")

    def story(self) -> Story:
        if not self.lines or self.lines[0][1] != FIRST_LINE:
            raise self.wrong(1, f"expected {FIRST_LINE!r}, as every story begins")
        head, body = self._parts()
        spec = self._spec(head)
        profile = head.pop("profile", (0, STRICT))
        if profile[1] not in PROFILES:
            raise self.wrong(profile[0], f"no such profile: {profile[1]}, expected one of {', '.join(PROFILES)}")
        given = self._given(spec, *head.pop("given", (0, "")))
        for name, (line, _) in head.items():
            raise self.wrong(line, f"there is a {name!r}, expected spec, profile or given")
        steps, claims, closing = list[TraceEvent](), list[StoryLine](), list[StoryLine]()
        for number, text in body:
            if found := STEP.fullmatch(text):
                if closing:
                    raise self.wrong(number, f"a step, and line {closing[0].line} says how the story ends")
                steps.append(self._step(spec, number, found, len(steps)))
                claims.append(StoryLine(number, old_wording.fate(found["becomes"] or "")))
            elif NUMBERED.match(text):
                raise self.wrong(number, f"{text.strip()!r} is no step, expected 1. STEP(ARGUMENT=NUMBER, …)")
            elif steps and text and not LEFT_OUT.match(text):
                closing.append(StoryLine(number, old_wording.closing(text, _departing(steps, claims))))
        if not steps:
            raise self.wrong(self.lines[-1][0], "there is no step, expected 1. STEP(ARGUMENT=NUMBER, …)")
        return Story(spec, profile[1], tuple(steps), given, tuple(claims), tuple(closing))

    def _parts(self) -> tuple[dict[str, tuple[int, str]], list[tuple[int, str]]]:
        """Return the head, by name, with the number of each line; and all that is below its empty line."""
        head: dict[str, tuple[int, str]] = {}
        for at, (number, line) in enumerate(self.lines[1:], 1):
            if not line:
                return head, self.lines[at:]
            name, colon, value = line.partition(":")
            if not colon or name in head:
                raise self.wrong(number, f"{line!r}, expected NAME: VALUE once, and an empty line before the steps")
            head[name] = number, value.strip()
        return head, []

    def _spec(self, head: dict[str, tuple[int, str]]) -> Spec:
        line, name = head.pop("spec", (1, ""))
        if not name:
            raise self.wrong(line, f"there is no spec, expected spec: one of {', '.join(SPECS)}, or a file")
        try:
            return load(name, self.path)
        except ValueError as error:
            raise self.wrong(line, str(error)) from None

    def _given(self, spec: Spec, line: int, text: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for name, value in self._pairs(line, text.replace(" = ", "=")):
            place = GIVEN.fullmatch(name)
            fields_of = spec.maps if place and place["key"] else spec.scalars
            if not place or place["field"] not in fields_of:
                raise self.wrong(line, f"given is {name!r}, expected one of {', '.join((*spec.scalars, *spec.maps))}")
            kept = getattr(spec.initial, place["field"])
            kind = type(kept.default if isinstance(kept, Map) else kept)
            found[name] = self._number(line, name, value, kind)
        return found

    def _step(self, spec: Spec, line: int, found: re.Match[str], row: int) -> TraceEvent:
        action = found["action"]
        if action not in spec.actions:
            raise self.wrong(line, f"no step {action!r}, expected one of {spec.name}: {', '.join(spec.actions)}")
        kinds = signature(spec.actions[action]).parameters
        given = dict(self._pairs(line, found["args"]))
        if given.keys() != set(spec.parameters[action]):
            expected = ", ".join(spec.parameters[action]) or "none"
            raise self.wrong(line, f"arguments of {action} are {', '.join(given) or 'none'}, expected {expected}")
        args = tuple(
            self._number(line, f"{action}, {name}", given[name], kinds[name].annotation)
            for name in spec.parameters[action]
        )
        saw = {name: self._number(line, f"saw {name}", value, int) for name, value in self._pairs(line, found["saw"])}
        if strange := [name for name in saw if name not in spec.scalars]:
            raise self.wrong(line, f"saw names {strange[0]}, expected one of {', '.join(spec.scalars)}")
        return TraceEvent((action, args), found["outcome"] or "ok", saw or None, row, row)

    def _pairs(self, line: int, text: str | None) -> Iterator[tuple[str, str]]:
        seen = set()
        for pair in BETWEEN.split(text or ""):
            name, equals, value = (part.strip() for part in pair.partition("="))
            if not pair.strip():
                continue
            if not equals or not value or name in seen:
                raise self.wrong(line, f"{pair.strip()!r}, expected NAME=NUMBER, each name once")
            seen.add(name)
            yield name, value

    def _number(self, line: int, name: str, value: str, kind: Any) -> int:
        if isinstance(kind, type) and issubclass(kind, IntEnum):
            if value in kind.__members__:
                return kind[value]
            if not _is_whole(value):
                raise self.wrong(line, f"{name} is {value!r}, expected one of {', '.join(kind.__members__)}")
        if not _is_whole(value):
            raise self.wrong(line, f"{name} is {value!r}, expected a whole number")
        number = int(value)
        if kind is bool and number not in (0, 1):
            raise self.wrong(line, f"{name} is {value}, expected 1 or 0: it is a flag")
        return number


def _departing(steps: Sequence[TraceEvent], said: Sequence[StoryLine]) -> str:
    """The name of the step that the story says to depart; that of the last one if it does not say."""
    departing = (taken for taken, line in zip(steps, said, strict=True) if line.becomes in DEPARTING)
    return next(departing, steps[-1]).event[0]


def _is_whole(text: str) -> bool:
    return re.fullmatch(r"-?\d{1,19}", text) is not None
