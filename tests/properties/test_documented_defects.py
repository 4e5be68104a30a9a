"""Documented defects of brokers, planted in the specs: each is noticed by the property that is named."""

from pathlib import Path

import pytest

from gapless.properties.faults import implementation, operators, spec_mutants, trace_defects, zoo
from gapless.properties.faults.documented_defects import DEFECTS, UNNOTICED, Defect, planted
from gapless.properties.faults.trace_defects import TraceDefect
from gapless.properties.faults.unmodelled_defects import DOES_NOT_APPLY
from gapless.properties.proof.counterexamples import settled
from gapless.spec.catalog import SPECS, Spec
from tests.support.night import NIGHT

DEFECTS_PAGE = Path(__file__).parents[2] / "docs" / "defects.md"


def broken(defect: Defect, spec: Spec) -> bool:
    """True if the property that is named breaks."""
    names = operators.behind_steps(SPECS[defect.spec])[defect.step]
    asked = [o for o in spec_mutants.obligations(spec, names) if o.invariant == defect.noticed_by]
    assert asked, defect
    return any(settled(obligation).verdict == "refuted" for obligation in asked)


SOME = DEFECTS if NIGHT else DEFECTS[::10]  # a night has all of them


@pytest.mark.slow
@pytest.mark.parametrize("defect", SOME, ids=lambda defect: defect.code)
def test_a_documented_defect_is_noticed_by_a_property_with_a_name(defect: Defect) -> None:
    """That nothing breaks without it is proved with all other obligations (test_proofs.py)."""
    assert broken(defect, defect.planted())


def test_there_are_enough_of_every_kind_and_each_is_documented() -> None:
    page = DEFECTS_PAGE.read_text(encoding="utf-8")
    assert len({defect.code for defect in DEFECTS}) == len(DEFECTS) >= 30
    assert len({defect.spec for defect in DEFECTS}) >= 11
    assert not [defect for defect in DEFECTS if f'<a id="{defect.citation.partition("#")[2]}">' not in page]


def test_a_defect_that_its_step_does_not_say_is_refused() -> None:
    with pytest.raises(LookupError, match="does not need 'nothing'"):
        Defect("T10", "transaction", "commit", "nothing", None, "?").planted()
    with pytest.raises(LookupError, match="does not say 'nothing'"):
        Defect("T10", "transaction", "commit", "nothing", "something", "?").planted()


@pytest.mark.slow
@pytest.mark.parametrize("spec", sorted({defect.spec for defect in UNNOTICED} - (set() if NIGHT else {"coordinator"})))
def test_unnoticed_faults_are_noticed_together(spec: str) -> None:
    mine = [defect for defect in UNNOTICED if defect.spec == spec]
    mutant = planted(*mine)
    assert all(broken(defect, mutant) for defect in mine)


def test_the_table_of_planted_defects_is_of_those_that_there_are() -> None:
    """`make mutants` writes it; each defect and each fault of the implementation has its row, and was caught."""
    planted = zoo.PAGE.read_text("utf-8").partition("\n## ")[0]
    rows = [line for line in planted.splitlines() if line.startswith("| ")][1:]
    where = {(cells[1].partition("]")[0].strip(" ["), cells[2].strip()) for cells in (row.split("|") for row in rows)}
    assert {(defect.code, f"{defect.spec}.{defect.step}") for defect in DEFECTS} <= where, "run `make mutants`"
    faults = sum(len(some) for some, _ in implementation.MACHINES.values())
    assert len(rows) == len(DEFECTS) + faults + len(trace_defects.DEFECTS), "run `make mutants`"
    assert not [row for row in rows if "| nothing |" in row]


def test_what_is_not_caught_is_reported() -> None:
    missed = zoo.Caught("T10", "transaction.commit", "a | b", "a_final_is_seen_once", 0, 3, 0.0, 0)
    caught = zoo.Caught("", "crashes", "a disk that lies", "crashes, case 1", 1, 1, 0.4, 0)
    page = zoo.page([missed, caught])
    assert "1 of 2 planted faults are caught, by every seed (50.0%)." in page
    assert "| [T10](../../docs/defects.md#t10) | transaction.commit | a \\| b | nothing | 0/3 | 0.0 |  |" in page
    listed, apply = len(zoo.codes()), len(zoo.codes()) - len(DOES_NOT_APPLY)
    assert f"Of {listed} documented defects {apply} apply, and of these 0 are planted and caught (0.0%)." in page
    assert "Planted nowhere, or not caught: T01, " in page


def test_a_fault_that_does_not_fit_is_no_fault() -> None:
    """Three of them once broke by their arguments alone, and counted as found."""
    assert implementation.MISFIT.search("TypeError: _trust() takes 3 positional arguments but 5 were given")
    assert implementation.MISFIT.search("TypeError: f() missing 1 required positional argument: 'x'")
    assert not implementation.MISFIT.search("TypeError: 'NoneType' object is not subscriptable")


def test_every_documented_defect_is_planted_or_does_not_apply() -> None:
    planted = {one.like for faults, _ in implementation.MACHINES.values() for one in faults if one.like}
    planted |= {defect.code for defect in DEFECTS} | {defect.code for defect in trace_defects.DEFECTS}
    assert sorted(planted | DOES_NOT_APPLY.keys()) == sorted(zoo.codes())
    assert not planted & DOES_NOT_APPLY.keys(), "what is planted applies"


@pytest.mark.parametrize("defect", trace_defects.DEFECTS, ids=lambda defect: defect.code)
def test_a_defect_shows_in_a_trace_that_conforms_without_it(defect: TraceDefect) -> None:
    verdict, rule, lines = defect.judged()
    assert (verdict, rule) == ("departs", defect.rule)
    assert 0 < lines <= 25
    assert defect.lawful().judged()[0] == "conforms"
