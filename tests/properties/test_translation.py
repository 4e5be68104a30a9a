"""The steps of kernels are the specs: Z3 reads the very functions, and is not fooled by others."""

from __future__ import annotations

import ast
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest

from gapless.properties.proof import counterexamples, induction, word_size
from gapless.properties.proof.translation import TranslatedStep, differs, steps
from gapless.spec.catalog import SPECS, Spec
from gapless.spec.reading.trees.ranges import guarded
from gapless.traces.replay.kernels import Kernel, kernel
from gapless.traces.replay.step_functions import trees_of
from gapless.traces.specs import load
from tests.support.night import NIGHT

EVERY_SPEC = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)


def theory(spec: Spec) -> induction.Theory:
    return induction.theory(spec, False, None)  # noqa: FBT003 - the design's own steps


@EVERY_SPEC
def test_nothing_that_a_kernel_of_ours_computes_leaves_64_bits(spec: Spec) -> None:
    """Inputs lie within the bound: that is checked before every event, and after every step."""
    trees = trees_of(spec)
    assert not trees.obstacle
    for tree in (*trees.actions.values(), *(tree for _, tree in trees.stand_ins())):
        assert guarded(tree) is tree


CALLED = "e, now, args, windows, origin, width, escape"
TICK = SPECS["op_batch"].codes["tick"]


class Otherwise(ast.NodeTransformer):
    """Functions with another expression in place of one. `times`: how often it was met."""

    def __init__(self, old: str, new: str) -> None:
        self.old, self.new, self.times = old, new, 0

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """A node, or what stands in for it."""
        super().generic_visit(node)
        if isinstance(node, ast.expr) and ast.unparse(node) == self.old:
            self.times += 1
            return ast.copy_location(ast.parse(self.new, mode="eval").body, node)
        return node


def wrong(of: Kernel, old: str, new: str) -> Kernel:
    """A kernel with another expression in its steps."""
    by = Otherwise(old, new)
    functions = tuple(ast.fix_missing_locations(by.visit(deepcopy(one))) for one in of.steps.functions)
    bodies = {n: ast.fix_missing_locations(by.visit(deepcopy(one))) for n, one in of.steps.quantifiers.items()}
    assert by.times
    made = replace(of)
    vars(made)["steps"] = replace(of.steps, functions=functions, quantifiers=bodies)
    return made


@pytest.mark.parametrize(
    ("spec", "action", "old", "new"),
    [
        ("log", "append", "a_position == s_end", "a_position >= s_end"),
        ("log", "flush", "s_flushed <= a_to", "s_flushed < a_to"),
        (
            "queue",
            "index",
            "at(windows, a_number - origin, width, 1, 0)",
            "at(windows, a_number - origin, width, 2, 0)",
        ),
        ("dispatch", "crash", "a_kept - origin", "a_kept + 1 - origin"),
        ("op_batch", "tick", f"step_{TICK}({CALLED})", f"1 + step_{TICK}({CALLED})"),
    ],
)
def test_a_kernel_that_is_another_one_is_noticed(spec: str, action: str, old: str, new: str) -> None:
    of = kernel(spec)
    assert induction.ask(differs(theory(SPECS[spec]), TranslatedStep(action), of).terms).verdict == "unsat"
    assert (
        induction.ask(differs(theory(SPECS[spec]), TranslatedStep(action), wrong(of, old, new)).terms).verdict == "sat"
    )


def test_a_quantifier_that_is_another_one_is_noticed() -> None:
    of = kernel("queue")
    other = wrong(
        of, "at(windows, n0 - origin, width, 0, 0) < a_start", "at(windows, n0 - origin, width, 0, 0) <= a_start"
    )
    assert induction.ask(differs(theory(SPECS["queue"]), TranslatedStep("expire"), of).terms).verdict == "unsat"
    assert induction.ask(differs(theory(SPECS["queue"]), TranslatedStep("expire"), other).terms).verdict == "sat"


def test_a_deviation_that_takes_what_its_action_takes_is_noticed() -> None:
    """Deviations are read too: here one that is tried although the action accepted."""
    of = kernel("transaction")
    (step,) = (step for step in steps(SPECS["transaction"]) if step.name == "commit_again")
    assert induction.ask(differs(theory(SPECS["transaction"]), step, of).terms).verdict == "unsat"
    other = wrong(of, "why > 0", "why >= 0")
    assert induction.ask(differs(theory(SPECS["transaction"]), step, other).terms).verdict == "sat"


@pytest.mark.skipif(not NIGHT, reason="a coordinator's steps have many ways; their proof is another test")
def test_a_takeover_behind_another_rule_is_noticed() -> None:
    """A takeover behind a broken rule is read too."""
    of, spec = kernel("coordinator"), SPECS["coordinator"]
    (step,) = (step for step in steps(spec) if step.takeover)
    broken, other = (
        1 + next(n for n, one in enumerate(of.reasons) if (one.action, one.rule) == ("load", f"coordinator/{rule}"))
        for rule in ("transaction-comes-back-as-it-was", "table-is-gone")
    )
    assert induction.ask(differs(theory(spec), step, of).terms).verdict == "unsat"
    behind_another = wrong(of, f"why == {broken}", f"why == {other}")
    assert induction.ask(differs(theory(spec), step, behind_another).terms).verdict == "sat"


# -- 64 bits -------------------------------------------------------------------------------------------------------

SPEC = '''"""A spec with arithmetic."""

from dataclasses import dataclass

from gapless.spec.language import replace, require


@dataclass(frozen=True, slots=True)
class State:
    """The state of what was taken."""

    n: int = 0


def take(s: State, count: int, size: int) -> State:
    """A batch is taken."""
    require({need}, "batch-is-small", because="a batch is small", otherwise="memory runs out")
    return replace(s, n=1)


def counted(s: State) -> bool:
    """Otherwise it is not."""
    return 0 <= s.n and s.n <= 1000


INITIAL = State()
ACTIONS = (take,)
INVARIANTS = (counted,)
'''


@pytest.mark.parametrize(
    ("need", "operation", "expected"),
    [
        ("count * size <= 1000000", "refuted", "`count * size` is "),
        ("0 <= count and count < 1000 and 0 <= size and size < 1000 and count * size <= 5000", "proved", ""),
        ("s.n * s.n * s.n <= count", "proved", ""),  # by the invariant
        ("size * 1000000000 <= count", "refuted", "`size * 1000000000` is "),
        (" + ".join(["count", "size"] * 5) + " <= 7", "refuted", " + count` is "),
    ],
)
def test_a_number_that_leaves_64_bits_is_reported_with_numbers(
    tmp_path: Path, need: str, operation: str, expected: str
) -> None:
    path = tmp_path / "taking.py"
    path.write_text(SPEC.format(need=need))
    spec = load(path)
    (obligation,) = word_size.obligations(spec)
    result = counterexamples.settled(obligation)
    assert result.verdict == operation
    assert expected in result.why
    assert induction.ask(differs(theory(spec), TranslatedStep("take")).terms).verdict == "unsat", (
        "the kernel gives up there"
    )
