"""A refutation is reported before a run to it is looked for, which may take a minute."""

from __future__ import annotations

from pathlib import Path

import pytest

from gapless.properties.proof import ledger, unrolling
from gapless.traces.specs import load
from tests.support.command_line import ROOT, gapless

WRONG = (
    (ROOT / "examples/lease.py")
    .read_text("utf-8")
    .replace("return replace(s, taken=False)", "return replace(s, taken=False, seen=Token(s.seen - 1))")
)


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    """A lease whose storage forgets a token at each expiry."""
    file = tmp_path / "lost.py"
    file.write_text(WRONG, "utf-8")
    return file


def test_every_answer_comes_before_the_first_run(wrong: Path) -> None:
    entries = list[ledger.LedgerEntry]()
    found = ledger.prove([load(wrong)], ledger.ProofOptions(jobs=1, fresh=True), on_progress=entries.append)
    refuted = [entry for entry in found.obligations if entry.result == "refuted"]
    assert refuted
    assert all(ledger.SEARCHED not in entry.why for entry in refuted)
    answers, runs = entries[: len(found.obligations)], entries[len(found.obligations) :]
    assert {entry.why for entry in answers if entry.result == "refuted"} == {ledger.SEARCHED}
    assert [entry.story for entry in runs] == [entry.story for entry in refuted]
    assert all("which may not be reachable" in "\n".join(entry.story) for entry in answers if entry.story)


def test_the_story_is_printed_with_its_answer(wrong: Path) -> None:
    ran = gapless("prove", "--fresh", str(wrong))
    assert ran.exit_code == 1
    first, rest = ran.stdout.index("  lost: expire breaks"), ran.stdout.index("proved", ran.stdout.index("refuted"))
    assert first < rest < ran.stdout.index("\nlost: expire breaks")


def test_a_search_that_fails_leaves_the_refutation(wrong: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_obligation: object) -> None:
        raise RuntimeError

    obligation = next(
        one for one in ledger.every(load(wrong)) if (one.step, one.invariant) == ("expire", "writes_never_go_back")
    )
    monkeypatch.setattr(unrolling, "run_to", fails)
    entry = ledger.settle(obligation)
    assert (entry.result, entry.why, entry.reached) == ("refuted", ledger.UNREACHED, False)
