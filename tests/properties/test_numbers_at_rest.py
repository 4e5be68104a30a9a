"""AT_REST for every number: proved, explored by both searches, and judged in traces, always with the same meaning."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gapless.properties.exploration import summary
from gapless.properties.exploration.bounds import bound_of
from gapless.properties.exploration.search import Exploration, explore
from gapless.properties.proof import ledger
from gapless.spec.catalog import Spec
from gapless.traces.check import check
from gapless.traces.report.values import Report
from gapless.traces.specs import NoSpec, load
from tests.support.command_line import ROOT, gapless

TEXT = (ROOT / "tests/support/retries.py").read_text("utf-8")
BOUNDED, OPEN = "a_message_is_done_or_set_aside", "no_message_is_taken"
"""A property that says between which numbers a message lies, and one that does not: no kernel judges that."""


def written(folder: Path, *changes: tuple[str, str], name: str = "retries") -> Path:
    """The spec with changes, in a file."""
    text = TEXT
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    if BOUNDED not in text.partition("AT_REST")[2]:
        text = text.replace(text[text.index(f"def {BOUNDED}") : text.index(f"def {OPEN}")], "")
    elif OPEN not in text.partition("AT_REST")[2]:
        text = text.replace(text[text.index(f"def {OPEN}") : text.index("INITIAL =")], "")
    file = folder / f"{name}.py"
    file.write_text(text, "utf-8")
    return file


def with_rest(folder: Path, holds: str) -> Path:
    return written(folder, (f"({BOUNDED},)", f"({holds},)"))


LEFT = [("send", 0), ("send", 1), ("receive", 0), ("delete", 0), ("receive", 1)]
DONE = [*LEFT, ("time_out", 1), ("receive", 1), ("time_out", 1)]


def judged(spec: Path, calls: list[tuple[str, int]]) -> Report:
    """The report on a trace that ends with the claim that all is done."""
    steps = [*((action, {"message": message}) for action, message in calls), ("end", {})]
    events = [
        {"spec": "retries", "trace": "q", "source": "a", "position": at, "action": action, "args": args}
        for at, (action, args) in enumerate(steps)
    ]
    file = spec.with_suffix(".ndjson")
    head = {"schema": "gapless-events", "version": 1}
    file.write_text("".join(f"{json.dumps(one)}\n" for one in (head, *events)), "utf-8")
    return check(file, specs=[spec])


@pytest.mark.parametrize("holds", [BOUNDED, OPEN])
def test_a_trace_is_judged_for_every_message(tmp_path: Path, holds: str) -> None:
    spec = with_rest(tmp_path, holds)
    assert judged(spec, DONE).verdict == "conforms"
    report = judged(spec, LEFT)
    (finding,) = report.findings
    assert finding.rule == f"retries/{holds.removeprefix('a_').replace('_', '-')}"
    assert any(line.startswith("Here: for message = 1: ") and "status[1] = TAKEN" in line for line in finding.story)
    plainly = [
        note for note in report.sources[0].notes if note.startswith("retries.end is judged by the plain functions")
    ]
    assert bool(plainly) == (holds == OPEN)


@pytest.mark.parametrize("holds", [BOUNDED, OPEN])
def test_it_is_proved_that_rest_can_be_reached_and_that_the_kernel_is_the_spec(tmp_path: Path, holds: str) -> None:
    proofs = ledger.prove([load(with_rest(tmp_path, holds))], ledger.ProofOptions(jobs=1))
    assert {entry.result for entry in proofs.obligations} == {"proved"}
    of_end = {entry.invariant for entry in proofs.obligations if entry.step == "end"}
    assert {"can_happen", "the_kernel_is_the_spec"} <= of_end


def both(spec: Spec) -> list[Exploration]:
    return [explore(spec, bound_of(spec), how=how) for how in ("plain", "native")]


def test_both_searches_reach_rest_in_the_same_states(tmp_path: Path) -> None:
    plain, native = both(load(with_rest(tmp_path, BOUNDED)))
    assert native.native
    assert plain.accepted["end"] == native.accepted["end"] > 0
    plain, native = both(load(with_rest(tmp_path, OPEN)))
    assert native.not_native == f"{OPEN} does not say between which numbers message lies"
    assert plain.accepted["end"] == native.accepted["end"] > 0


LOST = ("Status.READY))\n\n\ndef delete", "Status.NONE))\n\n\ndef delete")
TWO_SENT = ("message == s.sent,", "message == s.sent and s.sent < 2,")


@pytest.mark.parametrize("how", ["plain", "native"])
def test_a_run_that_ends_with_a_message_left_is_found(tmp_path: Path, how: str) -> None:
    """Two messages at most, so that runs end; a message whose consumer does not answer is forgotten."""
    spec = load(written(tmp_path, TWO_SENT, LOST))
    found = explore(spec, bound_of(spec), how=how)  # type: ignore[arg-type] # parametrized
    assert found.native == (how == "native")
    assert found.result == "breaks"
    assert found.broken
    assert dict(found.broken.witness) == {"message": 0}
    assert any(line.endswith('is done or set aside", for message = 0.') for line in summary.story(found))


def test_rules_and_steps_list_it_with_the_file_of_the_spec(tmp_path: Path) -> None:
    spec = with_rest(tmp_path, OPEN)
    listed = gapless("rules", "--spec", str(spec)).stdout
    assert "retries/no-message-is-taken\n  need of end: no message is taken\n" in listed
    assert "docs/design.md" not in listed.partition("no-message-is-taken")[2].partition("\n\n")[0]
    assert "needs: no message is taken (retries/no-message-is-taken)" in gapless("steps", str(spec)).stdout


def test_a_property_of_ever_more_cases_is_refused_with_its_line(tmp_path: Path) -> None:
    spec = written(tmp_path, ("implies(0 <= message < s.sent, done)", "done or message % 2 < 2"))
    line = spec.read_text("utf-8").splitlines().index(f"def {BOUNDED}(s: State, message: Message) -> bool:") + 1
    with pytest.raises(NoSpec, match=f"retries.py:{line}: {BOUNDED} has another answer for ever more numbers"):
        load(spec)
