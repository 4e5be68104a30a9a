"""The generated kernels are the specs: Z3 reads the very source, and is not fooled by another one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gapless.properties.proof import induction
from gapless.properties.proof.translation import TranslatedStep, differs, largest, steps
from gapless.spec.catalog import SPECS, Spec
from gapless.traces.replay.kernel_source import LIMIT
from gapless.traces.replay.kernels import kernel
from tests.support.night import by_day

pytestmark = pytest.mark.slow

EVERY_SPEC = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)


def theory(spec: Spec) -> induction.Theory:
    return induction.theory(spec, False, None)  # noqa: FBT003 - the design's own steps


@pytest.mark.parametrize("spec", by_day(list(SPECS.values())), ids=lambda spec: spec.name)
def test_nothing_that_a_kernel_computes_leaves_64_bits(spec: Spec) -> None:
    """As long as what goes in lies within its bound: that is looked at before every event, and behind every step."""
    for step in steps(spec):
        assert 0 < largest(kernel(spec.name), step, theory(spec)) < 2**63


def test_a_sum_that_leaves_64_bits_would_be_noticed() -> None:
    of = kernel("log")
    greedy = replace(of, source=of.source.replace("(a_position + a_size)", "(a_position * a_size)"))
    assert largest(greedy, TranslatedStep("append"), theory(SPECS["log"])) >= LIMIT**2


@pytest.mark.parametrize(
    ("spec", "action", "old", "new"),
    [
        ("log", "append", "(a_position == s_end)", "(a_position >= s_end)"),
        ("log", "append", "now[7] = a_time", "now[1] = a_time"),
        ("log", "flush", "(s_flushed <= a_to)", "(s_flushed < a_to)"),
        ("queue", "index", "width, 1, 0)", "width, 2, 0)"),
        ("queue", "expire", "n - origin, width, 0, 0) < a_start", "n - origin, width, 0, 0) <= a_start"),
        (
            "dispatch",
            "crash",
            "forget(windows, a_kept - origin, width, 1, 0)",
            "forget(windows, a_kept + 1, width, 1, 0)",
        ),
        ("checkpoint", "half", "now[3] = t0  # half_end", "pass"),
        ("op_batch", "tick", "why = step_", "why = 1 + step_"),
    ],
)
def test_a_kernel_that_is_another_one_is_noticed(spec: str, action: str, old: str, new: str) -> None:
    of = kernel(spec)
    assert old in of.source
    wrong = replace(of, source=of.source.replace(old, new))
    assert induction.ask(differs(theory(SPECS[spec]), TranslatedStep(action), of).terms).said == "unsat"
    assert induction.ask(differs(theory(SPECS[spec]), TranslatedStep(action), wrong).terms).said == "sat"


def test_a_deviation_that_takes_what_its_action_takes_is_noticed() -> None:
    """Deviations are read too: here one that is tried although the action accepted."""
    of = kernel("transaction")
    (step,) = (step for step in steps(SPECS["transaction"]) if step.name == "commit_again")
    wrong = replace(of, source=of.source.replace("if why > 0 and allowed", "if why >= 0 and allowed"))
    assert induction.ask(differs(theory(SPECS["transaction"]), step, of).terms).said == "unsat"
    assert induction.ask(differs(theory(SPECS["transaction"]), step, wrong).terms).said == "sat"
