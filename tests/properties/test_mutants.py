"""Planted faults: they are what they state, most are caught, and the others are reported."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gapless.properties.faults import operators, spec_mutants
from gapless.properties.faults.operators import Fault
from gapless.properties.faults.spec_mutants import BAR, MutantVerdict, judge, judged, sample, share_caught
from gapless.spec.catalog import SPECS, Spec
from tests.support.night import NIGHT
from tests.support.toy_spec import TOY, toy

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_faults_are_planted_in_every_step(spec: Spec) -> None:
    found = operators.faults(spec)
    steps = {*spec.actions, *(deviation.step.__name__ for deviation in spec.deviations)}
    assert found == operators.faults(spec)
    assert len({fault.name for fault in found}) == len(found)
    touched = set[str]().union(*(operators.behind_steps(spec)[fault.function] for fault in found))
    assert {step for step in steps if step.startswith("ask_to") or step == "disconnect"} | touched >= steps - {"crash"}
    mutant = operators.planted(spec, found[0])
    assert mutant.name == spec.name
    assert mutant.module.INVARIANTS is spec.module.INVARIANTS
    assert set(mutant.actions) == set(spec.actions)
    assert all(mutant.actions[name] is not spec.actions[name] for name in spec.actions)


def test_a_fault_is_what_it_says() -> None:
    spec = SPECS["queue"]
    by_name = {fault.name: fault for fault in operators.faults(spec)}
    fault = by_name["append: without numbers-of-a-queue-follow-one-another"]
    append = operators.planted(spec, fault).actions["append"]
    assert append(spec.initial, 7, 1, 10, 1, 0).end == 8
    fault = by_name["append: number == s.end → number <= s.end"]
    append = operators.planted(spec, fault).actions["append"]
    assert append(spec.initial, -1, 1, 10, 1, 0).end == 0
    fault = by_name["append: forgets end=Number(number + count)"]
    append = operators.planted(spec, fault).actions["append"]
    assert append(spec.initial, 0, 1, 10, 1, 0).end == 0
    assert {fault.kind for fault in by_name.values()} == {"a missing guard", "a wrong comparison", "a forgotten field"}


@pytest.mark.skipif(not NIGHT, reason="half a minute; each check catches what is its to catch below")
def test_of_a_sample_of_all_faults_nearly_all_are_noticed() -> None:
    found = list(judged(sample(SAMPLE), jobs=1, compared=False))
    assert len(found) == SAMPLE
    assert all(one.caught or one.same or one.why for one in found), [one for one in found if not one.caught]
    assert share_caught(found) >= BAR - 1 / SAMPLE, [one for one in found if one.survives]


SAMPLE = 8


def by_name(spec: Spec, name: str) -> MutantVerdict:
    """Return the verdict on a fault."""
    fault = next(fault for fault in operators.faults(spec) if fault.name == name)
    return judge(spec, fault)


def test_each_check_catches_what_is_its_to_catch() -> None:
    spec = SPECS["log"]
    assert by_name(spec, "flush: without bytes-are-written").refuted == "flush: positions_are_ordered"
    assert by_name(spec, "open: s.file_size == 0 → s.file_size == 0 + 1").never == "open"
    checksum = by_name(spec, "append: without body-has-its-checksum")
    assert checksum.by == ("refuted", "explored")
    assert checksum.refuted.startswith("ALWAYS: ")  # no invariant knows of a checksum: what can be done does


FORGETS = {
    "compaction": "find_entry: forgets begun=True",
    "cursor": "open: forgets end=end",
    "deadline": "live: forgets late=s.late + time",
    "dledger_index": "miss_units: forgets missing=s.missing + 1",
    "half_table": "decide: forgets decisions=s.decisions + 1",
    "hash_index": "put: forgets first=position if s.items == 1 else s.first",
    "index_table": "store: forgets keys=keys",
    "partition": "roll: forgets reached=Position(0)",
    "producer": "append: forgets time=time",
    "queue": "index_batch: forgets indexed=Number(number + count)",
    "stage": "pass_by: forgets passed=s.passed + 1",
    "tiered": "find_entry: forgets read=Number(number + 1)",
    "timer": "deliver: forgets delivered=s.delivered + 1",
    "timer_table": "find_row: forgets rows=s.rows + 1",
}


COSTLY = set() if NIGHT else {"partition", "producer"}
"""Specs whose steps take Z3 some seconds: by night."""


@pytest.mark.parametrize("spec", [spec for spec in FORGETS if spec not in COSTLY])
def test_a_step_that_forgets_what_a_later_one_needs_is_refuted(spec: str) -> None:
    """No invariant notices, for all is as it was: what can be done next does."""
    fault = next(fault for fault in operators.faults(SPECS[spec]) if fault.name == FORGETS[spec])
    assert judge(SPECS[spec], fault, compared=False).refuted.startswith("ALWAYS: ")


def test_what_no_property_catches_is_compared_in_any_case() -> None:
    """Otherwise a run without comparison reports that it shows nowhere."""
    spec = SPECS["cursor"]
    by = {}
    for fault in operators.faults(spec):
        if fault.name in {"save: forgets reached=to", FORGETS["cursor"]}:
            by[fault.name] = judge(spec, fault, compared=False).by
    assert by == {"save: forgets reached=to": ("explored",), FORGETS["cursor"]: ("refuted",)}


def test_a_fault_that_changes_nothing_is_proved_to_and_does_not_count(tmp_path: Path) -> None:
    found = by_name(toy(tmp_path), "add: without there-is-not-less")
    assert found.same
    assert not found.caught
    assert not found.makes_a_difference


def test_an_unnoticed_fault_survives(tmp_path: Path) -> None:
    spec = toy(tmp_path)
    found = [by_name(spec, name) for name in ("add: forgets idle=more", "add: without there-is-not-too-much")]
    assert not any(one.caught or one.same for one in found)
    assert share_caught(found) == 0
    assert by_name(spec, "add: forgets count=s.count + more").refuted == "add: the_count_goes_up"


FAULT = Fault("a missing guard", "open", 1, "without “anything”", 0, (0, 0), "None")


@pytest.mark.parametrize(
    ("one", "argued", "code", "says"),
    [
        (MutantVerdict("log", FAULT, refuted="open: something"), "", 0, "100.0% of the faults"),
        (MutantVerdict("log", FAULT, explored="open(1, 2)"), "", 1, "no property catches it, and no argument says why"),
        (MutantVerdict("log", FAULT), "", 1, "NO PROPERTY CATCHES IT"),
        (MutantVerdict("log", FAULT), "it is so", 1, "0.0% of the faults"),
        (MutantVerdict("log", FAULT, refuted="open: something"), "it is so", 1, "it is argued for, and need not be"),
        (MutantVerdict("log", FAULT, same=True), "it is so", 1, "it is argued for, and need not be"),
    ],
)
def test_the_command_fails_where_properties_catch_too_few_or_an_argument_is_idle(
    one: MutantVerdict,
    argued: str,
    code: int,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(spec_mutants, "judged", lambda *_, **__: iter([one]))
    monkeypatch.setattr(spec_mutants, "ARGUED", {("log", FAULT.name): argued} if argued else {})
    monkeypatch.setattr(operators, "faults", lambda _spec: (FAULT,))
    monkeypatch.setattr(sys, "argv", ["mutants"])
    assert spec_mutants.main() == code
    assert says in capsys.readouterr().out


def test_an_argument_for_what_is_not_planted_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    one = MutantVerdict("log", FAULT, refuted="open: something")
    monkeypatch.setattr(spec_mutants, "ARGUED", {("log", "open: long gone"): "it was so", ("queue", "x"): "not asked"})
    assert spec_mutants.wrong_arguments([one]) == [
        "log: open: long gone: it is argued for, and no such fault is planted"
    ]


def test_what_only_comparison_shows_counts_for_nothing_and_is_reported_apart() -> None:
    found = [
        MutantVerdict("log", FAULT, explored="open(1, 2)"),
        MutantVerdict("log", FAULT, refuted="x: y", explored="open(1, 2)"),
    ]
    assert [one.by_properties for one in found] == [False, True]
    assert share_caught(found) == 0.5
    row = dict(zip(spec_mutants.HEADS, next(iter(spec_mutants._rows(found))), strict=True))
    assert (row["by properties"], row["share"], row["by comparison only"], row["nobody"]) == ("1", "50%", "1", "0")
    assert "(by comparison)" in spec_mutants.page(found)


def test_what_the_page_says_of_other_specs_stays() -> None:
    of_log = [
        MutantVerdict("log", FAULT, refuted="x: y"),
        MutantVerdict("log", replace(FAULT, says="a_b"), explored="open(1, 2)"),
        MutantVerdict("log", replace(FAULT, says="a_c"), same=True),
    ]
    of_queue = [
        MutantVerdict("queue", replace(FAULT, says="d"), same=True),
        MutantVerdict("queue", replace(FAULT, says="e_f")),
    ]
    before = spec_mutants.page([*of_log, MutantVerdict("queue", FAULT, never="open")])
    assert spec_mutants.page(of_queue, before) == spec_mutants.page([*of_queue, *of_log])
    assert "| all | 5 | 2 | 1 | 33% | 1 | 1 | 0 | 1 | 0 | 0 | 1 |" in spec_mutants.page(of_queue, before)


def test_the_page_names_what_it_does_not_know() -> None:
    """A spec whose text changed since is named. `--write` and its name judge it again."""
    text = (spec_mutants.ROOT / spec_mutants.PAGE).read_text(encoding="utf-8")
    named = next((line for line in text.splitlines() if line.startswith(spec_mutants.OLDER)), "")
    older = named.removeprefix(spec_mutants.OLDER).strip(" .").split(", ")
    for name, spec in SPECS.items():
        assert f"{spec_mutants.TEXT} {name} {operators.text_digest(spec)} -->" in text or name in older


def test_the_page_sees_a_changed_spec_with_as_many_faults() -> None:
    before = spec_mutants.page([MutantVerdict(name, FAULT, never="open") for name in SPECS])
    assert spec_mutants.OLDER not in spec_mutants.page([], before)
    changed = before.replace(operators.text_digest(SPECS["log"]), "0" * 16)
    assert f"{spec_mutants.OLDER} log." in spec_mutants.page([], changed)


def test_a_verdict_outlives_a_change_of_prose(tmp_path: Path) -> None:
    """A docstring, a comment and a rule's sentence change nothing that a fault could break; a number does."""
    digests = [
        operators.text_digest(toy(tmp_path, text=text))
        for text in (
            TOY,
            TOY.replace('because="', 'because="of course, ').replace("ACTIONS =", "# the end\nACTIONS ="),
            TOY.replace("0 < more", "1 < more"),
        )
    ]
    assert digests[0] == digests[1] != digests[2]
