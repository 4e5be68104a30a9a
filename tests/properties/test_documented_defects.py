"""Documented defects of brokers, planted in the specs: each is noticed by the property that is named."""

import os
from pathlib import Path

import pytest

from gapless.properties.faults import operators, spec_mutants
from gapless.properties.faults.documented import DEFECTS, NOBODY_NOTICED, Defect, planted
from gapless.properties.proof.counterexamples import settled
from gapless.spec.catalog import SPECS, Spec

DEFECTS_PAGE = Path(__file__).parents[2] / "docs" / "defects.md"


def broken(defect: Defect, spec: Spec) -> bool:
    """Whether the property that is named breaks."""
    names = operators.behind_steps(SPECS[defect.spec])[defect.step]
    asked = [o for o in spec_mutants.obligations(spec, names) if o.invariant == defect.noticed_by]
    assert asked, defect
    return any(settled(obligation).verdict == "refuted" for obligation in asked)


SOME = DEFECTS if os.environ.get("HYPOTHESIS_PROFILE") == "night" else DEFECTS[::3]  # a night has all of them


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
@pytest.mark.parametrize("spec", sorted({defect.spec for defect in NOBODY_NOTICED}))
def test_faults_that_nobody_noticed_are_noticed_together(spec: str) -> None:
    mine = [defect for defect in NOBODY_NOTICED if defect.spec == spec]
    mutant = planted(*mine)
    assert all(broken(defect, mutant) for defect in mine)
