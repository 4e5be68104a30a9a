"""The files of generated runs: events, stories, and a program that performs them on a class.

`NAME.ndjson` has all runs, each a trace, as a system that keeps to the spec would record it; a system in any language
reads it, performs the steps, records what it did, and is checked. `NAME-1.story` and the others are tests for pytest.
`NAME_runs.py` performs the runs on a class in Python, next to the spec. A run that begins in a state of `INITIALS` is a
story alone, for a recording begins at INITIAL.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from gapless.properties.exploration.generation import GeneratedRun, RunStep, Suite
from gapless.spec.catalog import STRICT, Spec
from gapless.traces.replay.possible_states import TraceEvent
from gapless.traces.specs import GivenSpec
from gapless.traces.stories.playing import elements_of, text_of
from gapless.traces.stories.story import Story

SOURCE = "gapless generate"


def write(suite: Suite, folder: Path) -> list[Path]:
    """Write all files into a folder, which is made if it is not there. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    name = suite.spec.name
    files = {f"{name}.ndjson": events(suite), f"{name}_runs.py": program(suite, spec_name(suite.spec, folder))}
    for number, run in enumerate(suite.runs, 1):
        files[f"{name}-{number}.story"] = story(suite, run, spec_name(suite.spec, folder))
    for file, text in files.items():
        (folder / file).write_text(text, encoding="utf-8")
    return [folder / file for file in files]


def spec_name(spec: Spec, folder: Path) -> str:
    """The spec as a file in the folder names it: one of ours by its name, a file by its path from there."""
    return os.path.relpath(Path(spec.given).resolve(), folder.resolve()) if isinstance(spec, GivenSpec) else spec.name


def arguments(spec: Spec, step: RunStep) -> dict[str, int]:
    """The arguments of a step, by name."""
    return dict(zip(spec.parameters[step.call.action], map(int, step.call.args), strict=True))


def events(suite: Suite) -> str:
    """All runs that begin at INITIAL, as lines of JSON, each run a trace."""
    return "".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in _lines(suite))


def _lines(suite: Suite) -> Iterator[dict[str, object]]:
    yield {"schema": "gapless-events", "version": 1, "profile": STRICT}
    for number, run in enumerate(suite.recorded, 1):
        for position, step in enumerate(run.steps, 1):
            line: dict[str, object] = {
                "source": SOURCE,
                "spec": suite.spec.name,
                "trace": f"run-{number}",
                "position": position,
                "action": step.call.action,
                "args": arguments(suite.spec, step),
            }
            yield line | ({"outcome": "refused"} if step.refused else {})


def story(suite: Suite, run: GeneratedRun, name: str) -> str:
    """One run as a story, with the state in which it begins, and what each step changes."""
    steps = tuple(
        TraceEvent(
            (step.call.action, step.call.args),
            "refused" if step.refused else "ok",
            None,
            position,
            position,
        )
        for position, step in enumerate(run.steps, 1)
    )
    given = elements_of(run.start, suite.spec.initial)
    return text_of(Story(suite.spec, STRICT, steps, given), name, [f"made by: {command(suite)}"])


def program(suite: Suite, name: str) -> str:
    """A module that performs the runs on a class, next to the spec."""
    runs = "\n".join(f"    {_run(suite.spec, run.steps)}," for run in suite.recorded)
    return (
        f'"""Runs of {name}, made by: {command(suite)}\n\n'
        "A test performs them on a class that has a method for each step, and `as_spec`:\n\n"
        f"    from {suite.spec.name}_runs import perform\n\n"
        "    def test_all_runs() -> None:\n"
        f"        perform({suite.spec.name.title().replace('_', '')}Service)\n"
        '"""\n\n'
        "from pathlib import Path\n\n"
        "from gapless import machine_for\n\n"
        f"SPEC = {_spec_expression(suite.spec, name)}\n"
        f"RUNS = (\n{runs}\n)\n\n\n"
        "def perform(make):\n"
        '    """Perform each run on a new object, next to the spec; fails where both differ."""\n'
        "    for run in RUNS:\n"
        "        machine_for(SPEC, make).perform(run)\n"
    )


def _spec_expression(spec: Spec, name: str) -> str:
    """The spec as a program names it."""
    return f"Path(__file__).parent / {name!r}" if isinstance(spec, GivenSpec) else repr(name)


def _run(spec: Spec, run: Sequence[RunStep]) -> str:
    """The steps of a run, each with its arguments by name."""
    steps = "".join(f"\n        ({step.call.action!r}, {arguments(spec, step)!r})," for step in run)
    return f"[{steps}\n    ]"


def command(suite: Suite) -> str:
    """The command that makes the same again."""
    return f"gapless generate {suite.spec.called} --seed {suite.seed}{suite.options}"
