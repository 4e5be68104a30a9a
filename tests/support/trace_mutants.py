"""Randomly damaged recordings, and a walk through the spec that gives the right verdict of each.

Lines are dropped, doubled, moved, changed or cut off, clocks and positions shifted. The walk is a reader of its own: it
knows the specs, and nothing of columns, kernels, takeovers or stories. `python -m tests.support.trace_mutants` judges
ten thousand, and `--write` keeps how many were judged alike in `docs/detection.md`.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from pydantic import ValidationError

from gapless import Report, check
from gapless.native import Native
from gapless.properties.processes import workers
from gapless.spec.catalog import SPECS
from gapless.spec.language import ASSUMED, Refused
from gapless.traces.events.schema import Event
from gapless.traces.export import export
from tests.support.command_line import ROOT
from tests.support.pulsar_recordings import recording as pulsar_recording
from tests.support.rocketmq.recordings import recording
from tests.support.rocketmq.store_builder import varied

TRACES, LONG = 8, 40  # of a recording, so many traces of each spec, and of each trace so many events
PAGE = ROOT / "docs" / "detection.md"
Lines = list[str]


def written(path: Path, lines: Lines) -> Path:
    """A file of these lines."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def recordings(room: Path) -> list[Lines]:
    """The beginnings of what stores and coordinators did, as lines of events."""
    sources = [
        recording("pop_retry"),
        recording("lmq"),
        pulsar_recording("broker-restart"),
        varied(3, 60).write(room / "built", clean=True),
    ]
    found = []
    for number, source in enumerate(sources):
        export(source, room / f"{number}.ndjson")
        header, *lines = (room / f"{number}.ndjson").read_text("utf-8").splitlines()
        found.append([header, *beginnings(lines)])
    return found


def beginnings(lines: Lines) -> Iterator[str]:
    """The first events of some traces."""
    seen: dict[tuple[str, str], int] = {}
    of_spec: dict[str, set[str]] = {}
    for line in lines:
        event = json.loads(line)
        spec, trace = event["spec"], event["trace"]
        some = of_spec.setdefault(spec, set())
        if trace in some or len(some) < TRACES:
            some.add(trace)
            seen[spec, trace] = seen.get((spec, trace), 0) + 1
            if seen[spec, trace] <= LONG:
                yield line


# -- the walk ------------------------------------------------------------------------------------------------------


@dataclass
class WalkResult:
    """The result of a walk through a file. `departs`: by spec and trace, the line."""

    readable: bool = True
    undecided: bool = False
    departs: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """The file's."""
        if not self.readable:
            return "unreadable"
        return "departs" if self.departs else "inconclusive" if self.undecided else "conforms"


def walk(lines: Lines, profile: str) -> WalkResult:
    """Each trace from its first event on, until it departs. One that does not say how it begins is not judged."""
    found = WalkResult()
    states: dict[tuple[str, str], list[Any]] = {}
    positions: dict[tuple[str, str], int] = {}
    left = set()  # traces that are not judged, or no further
    for number, line in enumerate(lines[1:], start=2):
        try:
            event = Event.model_validate(json.loads(line))
        except (ValueError, ValidationError):
            return WalkResult(readable=False)
        key = (event.spec, event.trace)
        if event.position < positions.get(key, event.position):
            return WalkResult(readable=False)
        positions[key] = event.position
        if key not in states and key not in left and "open" in SPECS[event.spec].actions and event.action != "open":
            found.undecided = True
            left.add(key)
        if key in left:
            continue
        try:
            states[key] = _after(event, states.get(key, [SPECS[event.spec].initial]), profile)
        except _BrokenPromise:
            found.undecided = True
            left.add(key)
            continue
        if not states[key]:
            found.departs[key] = number
            left.add(key)
    return found


class _BrokenPromise(Exception):  # noqa: N818 - it names an outcome
    """The environment did what the spec assumes that it does not."""


def _after(event: Event, before: list[Any], profile: str) -> list[Any]:
    """The states that are possible behind an event; none where it departs."""
    spec, after = SPECS[event.spec], []
    for state in before:
        if event.outcome in ("unknown", "refused"):
            after.append(state)
        try:
            stepped, _ = spec.step(state, event.action, event.args, profile)
        except Refused as refusal:
            if refusal.rule == ASSUMED:
                raise _BrokenPromise from None
            continue
        if event.outcome == "refused":
            try:
                spec.actions[event.action](state, *(event.args[name] for name in spec.parameters[event.action]))
            except Refused:
                continue
            after.remove(state)
        else:
            after.append(stepped)
    return [one for one in after if all(int(getattr(one, name)) == value for name, value in (event.saw or {}).items())]


# -- mutations -----------------------------------------------------------------------------------------------------


def drop(lines: Lines, choose: random.Random) -> None:
    del lines[choose.randrange(1, len(lines))]


def duplicate(lines: Lines, choose: random.Random) -> None:
    at = choose.randrange(1, len(lines))
    lines.insert(choose.choice((at, choose.randrange(1, len(lines) + 1))), lines[at])


def reorder(lines: Lines, choose: random.Random) -> None:
    one, other = choose.randrange(1, len(lines)), choose.randrange(1, len(lines))
    first, second = json.loads(lines[one]), json.loads(lines[other])
    if choose.random() < 0.7:  # the steps change places, and positions stay in order
        first["position"], second["position"] = second["position"], first["position"]
    lines[one], lines[other] = json.dumps(second), json.dumps(first)


def corrupt(lines: Lines, choose: random.Random) -> None:
    at = choose.randrange(1, len(lines))
    if choose.random() < 0.1:
        data = bytearray(lines[at].encode())
        data[choose.randrange(len(data))] = choose.randrange(32, 127)
        lines[at] = data.decode(errors="replace").replace("\n", " ")
        return
    event = json.loads(lines[at])
    if event.get("args") and choose.random() < 0.9:
        name = choose.choice(sorted(event["args"]))
        value = event["args"][name]
        event["args"][name] = choose.choice((value + 1, value - 1, 0, 1, -1, value * 2, 2**63 - 1, value))
    else:
        event["outcome"] = choose.choice(("refused", "inferred", "ok", "lost"))
    lines[at] = json.dumps(event)


def truncate(lines: Lines, choose: random.Random) -> None:
    del lines[choose.randrange(2, len(lines)) :]


def skew(lines: Lines, choose: random.Random) -> None:
    """A clock or a counter that is off from some event on."""
    at, by = choose.randrange(1, len(lines)), choose.choice((-1000, -1, 1, 1000))
    key = choose.choice(("position", "time"))
    for number in range(at, len(lines)):
        event = json.loads(lines[number])
        if key == "position":
            event["position"] += by
        elif "time" in event.get("args", {}):
            event["args"]["time"] += by
        lines[number] = json.dumps(event)


MUTATIONS: tuple[Callable[[Lines, random.Random], None], ...] = (drop, duplicate, reorder, corrupt, truncate, skew)


# -- both say the same ---------------------------------------------------------------------------------------------


def differ(report: Report, walked: WalkResult) -> str | None:
    """Describe how a report differs from the walk."""
    if report.verdict != walked.verdict:
        return f"the report says {report.verdict}, the walk {walked.verdict}"
    first: dict[tuple[str, str], int] = {}
    for one in report.violations:
        key = (one.spec, one.trace)
        first[key] = min(one.where.offset, first.get(key, one.where.offset))
    wrong = {key: at for key, at in first.items() if walked.departs.get(key) != at}
    if walked.readable and wrong:
        return f"the report says {wrong}, the walk {walked.departs}"
    return None


# -- many mutants --------------------------------------------------------------------------------------------------


class MutantResult(NamedTuple):
    """The result of one mutant. `by`: the mutations · `walked`: the verdict it must get · `wrong`: the difference."""

    by: tuple[str, ...]
    walked: str
    wrong: str | None


def judged(whole: list[Lines], seed: int, room: Path) -> MutantResult:
    """One mutant of one of these recordings: what a walk says of it, and whether a check says the same."""
    choose = random.Random(seed)
    lines = list(choose.choice(whole))
    done = [choose.choice(MUTATIONS) for _ in range(choose.choice((1, 1, 1, 2)))]
    for mutation in done:
        if len(lines) > 2:  # the header, and something to change
            with suppress(ValueError):  # what another mutation made of a line is no JSON
                mutation(lines, choose)
    walked = walk(lines, json.loads(lines[0])["profile"])
    report = check(written(room / "events.ndjson", lines), jobs=1)
    return MutantResult(tuple(mutation.__name__ for mutation in done), walked.verdict, differ(report, walked))


def part(seeds: range) -> list[MutantResult]:
    """Some mutants, in a process of their own."""
    Native.few = -1  # what is tried is what judges large files
    with TemporaryDirectory() as room:
        whole = recordings(Path(room))
        return [judged(whole, seed, Path(room)) for seed in seeds]


INTRODUCTION = """# Mutants of traces

Made by `make mutants`. Recordings were damaged at random: lines dropped, doubled, moved, changed or cut off,
clocks and positions shifted. What each must be judged is what a walk through the spec says, step by step;
where a trace departs, the line counts, too.
"""


def counted(found: list[MutantResult]) -> str:
    """The page that is kept."""
    must = Counter(one.walked for one in found)
    right = Counter(one.walked for one in found if one.wrong is None)
    rows = [f"| {verdict} | {must[verdict]:,} | {right[verdict]:,} |" for verdict in sorted(must)]
    alike = sum(right.values())
    return "\n".join(
        (
            *INTRODUCTION.splitlines(),
            "",
            f"{alike:,} of {len(found):,} mutants are judged right, at the right line ({alike / len(found):.2%}).",
            "",
            "| they must get | mutants | judged right |",
            "|---|--:|--:|",
            *rows,
            "",
        )
    )


def main() -> int:
    """Judge many; 1 where one is judged otherwise than it must be."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.trace_mutants", description=str(__doc__).split("\n")[0]
    )
    parser.add_argument("--mutants", type=int, default=10_000, help="(default: 10,000)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--write", action="store_true", help="write docs/detection.md")
    chosen = parser.parse_args()
    with workers(chosen.jobs) as pool:
        parts = [range(low, min(low + 500, chosen.mutants)) for low in range(0, chosen.mutants, 500)]
        found = [one for some in pool.map(part, parts) for one in some]
    for seed, one in enumerate(found):
        if one.wrong:
            sys.stdout.write(f"{seed}: {', '.join(one.by)}: {one.wrong}\n")
    page = counted(found)
    sys.stdout.write(page)
    if chosen.write:
        PAGE.write_text(page, encoding="utf-8")
    return int(any(one.wrong for one in found))


if __name__ == "__main__":
    sys.exit(main())
