"""The guard audit: the page is up to date, and a guard that protects nothing is reported."""

import hashlib
import sys
from pathlib import Path

import pytest

from gapless.properties.faults import guard_audit
from gapless.properties.faults.guard_audit import (
    ARGUED,
    BEGIN,
    END,
    PAGE,
    ROOT,
    GuardAudit,
    audit,
    digest,
    page,
    read,
    summary,
)
from gapless.spec.catalog import SPECS, Spec
from tests.support.toy_spec import toy

pytestmark = pytest.mark.slow

AGAIN = "run `python -m gapless.properties.faults.guard_audit --write`"


@pytest.fixture(scope="module")
def found() -> dict[str, GuardAudit]:
    """The page in the repository."""
    return read((ROOT / PAGE).read_text(encoding="utf-8"))


def test_the_page_is_of_the_specs_as_they_are(found: dict[str, GuardAudit]) -> None:
    stale = [name for name, spec in SPECS.items() if name not in found or found[name].digest != digest(spec)]
    assert not stale, AGAIN
    assert page(found) == (ROOT / PAGE).read_text(encoding="utf-8"), AGAIN


def test_the_readme_sums_it_up(found: dict[str, GuardAudit]) -> None:
    readme = (ROOT / "properties/README.md").read_text(encoding="utf-8")
    assert summary(found) == readme.partition(BEGIN)[2].partition(END)[0].strip("\n") + "\n", AGAIN


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_every_need_is_on_the_page(spec: Spec, found: dict[str, GuardAudit]) -> None:
    needs = [(step.step.__name__, rule) for step in guard_audit.steps(spec) for rule in step.needs]
    assert needs == [(guard.step, guard.rule) for guard in found[spec.name].guards], AGAIN


def test_a_sample_is_audited_again_and_comes_to_the_same(found: dict[str, GuardAudit]) -> None:
    every = [(spec, step) for spec in SPECS.values() for step in guard_audit.steps(spec)]
    every.sort(key=lambda one: hashlib.sha256(f"{one[0].name} {one[1].step.__name__}".encode()).digest())
    for spec, step in every[:3]:
        again = [step.without(rule) for rule in step.needs]
        assert again == [guard for guard in found[spec.name].guards if guard.step == step.step.__name__], AGAIN


def test_an_example_rests_on_no_key_beyond_the_window() -> None:
    """An example must state the result of a request that only a Map names: otherwise it cannot be confirmed."""
    (finish,) = (step for step in guard_audit.steps(SPECS["coordinator"]) if step.step.__name__ == "finish")
    assert finish.without("coordinator-runs").says == ("who does not run ends nothing",)


def test_every_guard_bears_load_or_has_its_reason(found: dict[str, GuardAudit]) -> None:
    every = [guard for audited in found.values() for guard in audited.guards]
    assert not [guard for guard in every if guard.why == "unneeded"]
    assert all(guard.says for guard in every if guard.why in {"load-bearing", "argued"})
    argued = {(guard.spec, guard.step, guard.rule) for guard in every if guard.why == "argued"}
    assert argued == set(ARGUED), "nothing is argued that a property shows"


def test_a_guard_that_protects_nothing_is_reported(tmp_path: Path) -> None:
    assert {(guard.rule, guard.why, guard.says) for guard in audit(toy(tmp_path))} == {
        ("there-is-more", "load-bearing", ("the count goes up",)),
        ("there-is-not-less", "implied", ()),
        ("there-is-not-too-much", "unneeded", ()),
        ("it-is-so", "judges the event alone", ()),
    }


def test_the_command_fails_where_a_guard_protects_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = toy(tmp_path)
    monkeypatch.setattr(guard_audit, "SPECS", {"toy": spec})
    monkeypatch.setattr(guard_audit, "read", lambda _text: {"toy": GuardAudit(digest(spec), tuple(audit(spec)))})
    monkeypatch.setattr(sys, "argv", ["guards"])
    assert guard_audit.main() == 1
    assert "toy: add: nothing breaks without “there-is-not-too-much”" in capsys.readouterr().out
