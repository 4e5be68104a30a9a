"""The model itself: random walks keep what the invariants say, and every step can happen."""

import builtins
from collections.abc import Callable, Iterator
from dataclasses import fields
from inspect import signature
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.properties.faults.false_friends import truncate_as_landed
from gapless.spec import language, ring
from gapless.spec.catalog import SPECS, Spec, rule, spec_from, waiving
from gapless.spec.language import APPLIES, ASSUMED, Map, Refused, assume, waived
from gapless.spec.ring import Batch
from gapless.traces.replay.kernels import kernel
from gapless.traces.rules import rules
from tests.support.night import NIGHT, by_day
from tests.support.walks import broker, walks

SPEC_LIST = tuple(SPECS.values())
STEPS = 14  # of a walk
IDS = Path(__file__).with_name("rule_ids.txt")


def named(spec: Spec) -> str:
    return spec.name


def nearby(state: Any) -> st.SearchStrategy[int]:
    """Numbers that a step may be about: small ones, and the state's own, with their neighbours."""
    own = {int(v) for f in fields(state) if not isinstance(v := getattr(state, f.name), Map)}
    return st.sampled_from(sorted({n + d for n in own | {0} for d in (-1, 0, 1, 2, 20)}))


def walk(spec: Spec, data: st.DataObject, profile: str) -> Iterator[tuple[Any, Any]]:
    """The states before and after every accepted step of a random walk."""
    state = spec.initial
    for _ in range(STEPS):
        action = data.draw(st.sampled_from(sorted(spec.actions)))
        args = {name: data.draw(nearby(state)) for name in spec.parameters[action]}
        try:
            after, _ = spec.step(state, action, args, profile)
        except Refused:
            continue
        yield state, after
        state = after


def numbers_of(state: Any) -> range:
    """The numbers that a universal parameter is tried on."""
    ends = ("end", "indexed", "newest", "half_end", "op_end", "scanned", "cut")
    last = max((int(getattr(state, f.name)) for f in fields(state) if f.name in ends), default=0)
    return range(-2, min(last, 60) + 3)


def holds(function: Callable[..., bool], *states: Any) -> bool:
    """True if it holds for every number in reach."""
    free = len(signature(function).parameters) - len(states)
    return all(function(*states, *numbers) for numbers in product(numbers_of(states[-1]), repeat=free))


@pytest.mark.parametrize("spec", by_day(SPEC_LIST, 1 / 4), ids=named)
@given(data=st.data())
def test_every_step_keeps_every_invariant(spec: Spec, data: st.DataObject) -> None:
    for before, after in walk(spec, data, profile="nobody"):
        for invariant in spec.invariants():
            assert holds(invariant, after), invariant.__name__
        for step_property in spec.step_properties():
            assert holds(step_property, before, after), step_property.__name__


@pytest.mark.parametrize("spec", by_day(SPEC_LIST, 1 / 4), ids=named)
@given(data=st.data())
def test_a_deviation_is_tried_only_where_its_action_refuses(spec: Spec, data: st.DataObject) -> None:
    """That at most one of them accepts is proved (`induction.exclusive`)."""
    state = spec.initial
    for before, _after in walk(spec, data, profile=broker(spec)):
        state = before
    for deviation in spec.deviations:
        action = deviation.instead_of.__name__
        args = [data.draw(nearby(state)) for _ in spec.parameters[action]]
        if accepts(deviation.instead_of, state, args):
            taken = spec.step(state, action, dict(zip(spec.parameters[action], args, strict=True)), broker(spec))
            assert taken == (deviation.instead_of(state, *args), None)


def accepts(step: Callable[..., Any], state: Any, args: list[int]) -> bool:
    try:
        step(state, *args)
    except Refused:
        return False
    return True


def test_every_deviation_takes_the_arguments_of_its_action() -> None:
    for spec in SPEC_LIST:
        for deviation in spec.deviations:
            assert list(signature(deviation.step).parameters) == list(signature(deviation.instead_of).parameters)


@pytest.mark.parametrize("spec", SPEC_LIST, ids=named)
def test_likely_steps_keep_the_invariants_too(spec: Spec) -> None:
    """Long walks of steps that are likely to be taken meet every action and deviation; see `test_kernels`."""
    for profile, invariants in (("nobody", spec.invariants()), (broker(spec), spec.invariants(weak=True))):
        for offer in walks(spec, profile, 60 if NIGHT else 10):
            for invariant in invariants:
                assert holds(invariant, offer.after), (invariant.__name__, offer)


LOST: dict[str, tuple[str, list[tuple[str, tuple[int, ...]]]]] = {
    "log": (
        "bytes-are-on-disk",
        [("open", (0, 100)), ("append", (0, 50, 0, 1, 1, 1, 1, 1)), ("acknowledge", (50,))],
    ),
    "queue": (
        "entry-points-at-its-message",
        [("open", (0, 0)), ("append", (0, 1, 7, 91, 0)), ("index", (0, 8, 91, 0))],
    ),
    "dispatch": (
        "every-entry-before-the-commit-position-is-written",
        [
            ("open", (0, 1)),
            ("scan", (0,)),
            ("take", (0,)),
            ("scan", (1,)),
            ("take", (1,)),
            ("write", (1,)),
            ("commit", (2,)),
        ],
    ),
    "ring": (
        "ring-has-room-for-the-batch",
        [("open", (1,)), ("cut", (0,)), ("cut", (1,)), ("decode", (0,)), ("decode", (1,))],
    ),
    "transaction": ("decision-came-before-the-op", [("open", (0, 0, 0)), ("prepare", (0, 7, 1)), ("mark", (0,))]),
    "checkpoint": (
        "half-cursor-stays-within-the-halves-of-the-log",
        [("open", (0, 0)), ("half", (0,)), ("resolve", (0, 3, 0)), ("resolve", (1, 3, 1)), ("advance", (2,))],
    ),
    "check_service": (
        "half-that-waits-for-its-op-is-decided",
        [("open", (1,)), ("prepare", ()), ("enqueue", (0, 2)), ("write", ())],
    ),
    "half_cache": ("half-is-written-before-it-is-put-into-the-cache", [("open", (0, 0, 1)), ("put", (0, 0))]),
    "visibility": ("half-that-consumers-can-read-is-committed", [("prepare", (7,)), ("show", (0, 7))]),
    "delivery": ("half-that-was-handed-out-was-committed", [("open", (0,)), ("append", (1,)), ("hand", ())]),
    "cursor": ("cursor-of-the-group-stays-within-its-queue", [("open", (1,)), ("save", (2,))]),
    "deadline": (
        "task-is-done-when-its-time-has-come",
        [("open", (1, 0, 1)), ("live", (21,)), ("wait", ())],
    ),
    "extension": ("unit-has-the-size-that-its-bitmap-makes", [("find_unit", (0, 21, 0, 4, 1, 1))]),
    "hash_index": (
        "items-come-in-the-order-of-the-log",
        [("open", (1,)), ("put", (0, 0, 5, 1, 1)), ("put", (0, 1, 4, 1, 1))],
    ),
    "lookup": ("numbers-of-halves-follow-one-another", [("open", (0, 0)), ("append", (-3, 1))]),
    "broker": (
        "final-is-on-disk",
        [
            ("open", (1, 20)),
            ("prepare", (0, 0, 7, 3)),
            ("flush", ()),
            ("answer", ()),
            ("run", ()),
            ("ask_to_commit", (0,)),
            ("commit", (1, 3)),
            ("dispatch", (1,)),
        ],
    ),
    "op_batch": (
        "no-op-names-the-half-yet",
        [("open", (0, 0)), ("enqueue", (0, 2, 1)), ("enqueue", (0, 2, 1))],
    ),
    "coordinator": (
        "slot-is-free",
        [("open", (1,)), ("admit", (0,)), ("admit", (1,)), ("begin", (0, 0, 0, 9)), ("begin", (1, 1, 0, 9))],
    ),
    "tiered": (
        "tiered-queue-file-holds-what-its-metadata-says",
        [("open", (0, 0)), ("find_queue_file", (0, -1, 2))],
    ),
    "partition": (
        "high-watermark-stays-within-the-log",
        [("open", (0, 0, 0, 0, -1, 0, -1, -1, 0)), ("raise_watermark", (1, -1))],
    ),
    "producer": (
        "snapshot-is-not-ahead-of-its-log",
        [("open", (0, 0, -1, -1, -1, 0, -1, -1, -1, 1, 1)), ("snapshot", (0, 0, 0, 0, 0, 0, -1, -1))],
    ),
    "aborted_index": (
        "every-abort-is-in-the-index",
        [("open", (0,)), ("abort", (7, 0, 1, 2)), ("abort", (7, 2, 3, 4))],
    ),
    "partition_client": (
        "record-that-is-received-is-in-the-log",
        [("open", (0, 1)), ("show", (0, 2)), ("receive", (0, 3))],
    ),
    "kafka_transaction": (
        "complete-transaction-has-its-marker-in-every-partition",
        [("open", (0, 7, 0)), ("add", (0, 0)), ("decide", (1, 0, 1, 1)), ("complete", (7, 0))],
    ),
    "group_offsets": (
        "offset-that-is-committed-counts-from-0",
        [("open", (0, -1)), ("commit", (0, -2))],
    ),
    "startup": ("version-of-a-start-is-known", [("open", (1,))]),
    "dledger_index": (
        "every-dledger-entry-before-it-has-its-unit",
        [("open", (1,)), ("find_unit", (-1, 0, 9, 1, 1, -1, 0, 9, 1))],
    ),
    "compaction": (
        "message-that-was-not-compacted-is-kept",
        [
            ("find_files", (0, 1, 1)),
            ("find_entry", (0, 0, 1, 0, 0, 1, 1, 1, 1, 0, 0, 1, 0, 0, 1, 1, 1)),
            ("miss", (0, 1, -1)),
        ],
    ),
    "half_table": ("half-has-one-row", [("prepare", (0, 9)), *2 * [("find_row", (9, 0, 0, 1, 1))]]),
    "index_table": ("key-of-a-record-has-one-row", [("store", (0, 1)), *2 * [("find_row", (1, 1, 1))]]),
    "timer_table": ("timer-has-one-row", [("wait", (0,)), *2 * [("find_row", (1, 1, 0))]]),
    "stage": ("passed-message-has-left-its-stage", [("enter", (0,)), ("pass_by", (0,))]),
    "timer": ("unit-is-delivered-once", [("open", (0,)), ("deliver", (1, 0))]),
    "permits": ("permit-is-free", [("open", (1, 0)), ("acquire", (0,)), ("acquire", (1,))]),
}


@pytest.mark.parametrize("spec", SPEC_LIST, ids=named)
def test_an_invariant_that_loses_its_guard_is_broken(spec: Spec) -> None:
    """Without *the bytes are on disk*, an acknowledgement may be a lie; without the numbers' order, an entry may."""
    guard, steps = LOST[spec.name]
    guards = {guard, "half-is-in-the-log-and-not-done-with"}  # or there would be nothing to advance over
    token = waived.set(frozenset(guards))
    try:
        state = spec.initial
        for action, args in steps:
            state = spec.actions[action](state, *args)
    finally:
        waived.reset(token)
    assert not all(holds(invariant, state) for invariant in spec.invariants())


def test_the_truncation_that_landed_dispatches_what_was_cut_off() -> None:
    """Batch 1 of the old log is still in the ring, and goes to the queues as batch 1 of the new one."""
    s = ring.cut(ring.cut(ring.open(ring.INITIAL, 16), Batch(0)), Batch(1))
    s = truncate_as_landed(ring.decode(s, Batch(1)))
    assert not holds(ring.a_slot_holds_the_batch_that_belongs_there, s)
    s = ring.dispatch(ring.decode(ring.cut(s, Batch(0)), Batch(0)), Batch(0))
    s = ring.dispatch(s, Batch(1))
    assert s.cut == 1
    assert not holds(ring.dispatch_never_passes_a_gap, s)


def test_the_truncation_that_landed_leaves_out_what_lies_before_the_old_pointer() -> None:
    """The pointer has passed the slot of batch 0, and waits for batch 1."""
    s = ring.cut(ring.open(ring.INITIAL, 16), Batch(0))
    s = truncate_as_landed(ring.dispatch(ring.decode(s, Batch(0)), Batch(0)))
    assert not holds(ring.the_pointer_stays_behind_the_scanner, s)
    s = ring.decode(ring.cut(ring.cut(s, Batch(0)), Batch(1)), Batch(1))
    s = ring.dispatch(s, Batch(1))
    assert not holds(ring.every_batch_is_dispatched_once, s)
    assert s.dispatched[Batch(0)] == 0


def test_a_truncation_that_restarts_keeps_the_invariants() -> None:
    s = ring.truncate(ring.decode(ring.cut(ring.cut(ring.open(ring.INITIAL, 16), Batch(0)), Batch(1)), Batch(1)))
    assert all(holds(invariant, s) for invariant in ring.INVARIANTS)
    with pytest.raises(Refused, match="the batch lies in its slot"):
        ring.dispatch(s, Batch(0))


@pytest.mark.parametrize("spec", [spec for spec in SPEC_LIST if spec.deviations], ids=named)
@given(data=st.data())
def test_with_deviations_the_weak_invariants_are_left(spec: Spec, data: st.DataObject) -> None:
    for before, after in walk(spec, data, profile=broker(spec)):
        for invariant in spec.invariants(weak=True):
            assert holds(invariant, after), invariant.__name__
        for step_property in spec.step_properties(weak=True):
            assert holds(step_property, before, after), step_property.__name__


@given(entries=st.dictionaries(st.integers(-3, 9), st.integers(0, 2)), low=st.integers(-4, 10))
def test_a_map_forgets_from_a_key_on(entries: dict[int, int], low: int) -> None:
    whole: Map[int, int] = Map(1)
    kept: Map[int, int] = Map(1)
    for key, value in entries.items():
        whole = whole.set(key, value)
        kept = kept.set(key, value) if key < low else kept
    assert whole.forget_from(low) == kept


def test_the_page_of_specs_names_every_step() -> None:
    page = (Path(ring.__file__).parent / "README.md").read_text(encoding="utf-8")
    for spec in SPEC_LIST:
        row = next(line for line in page.splitlines() if line.startswith(f"| [{spec.name}.py]({spec.name}.py) |"))
        assert row.endswith(f"| {', '.join(spec.actions)} |")


def test_a_rule_keeps_its_id() -> None:
    """Users ignore rules by their ids: the list next to this test stays, whatever happens to sentences."""
    assert sorted(rule.id for rule in rules()) == IDS.read_text(encoding="utf-8").split()


def test_a_rule_is_asked_for_by_its_id() -> None:
    assert rule("queue/entry-points-at-its-message").because == "the entry points at its message"
    for wrong in ("queue/entry-points", "entry-points-at-its-message", "kafka/entry-points-at-its-message"):
        with pytest.raises(LookupError, match="no spec states a rule"):
            rule(wrong)


def test_a_rule_that_is_waived_in_one_spec_holds_in_another() -> None:
    state = SPECS["log"].initial
    with waiving("log", frozenset({"queue/bytes-are-written"})), pytest.raises(Refused):
        SPECS["log"].actions["flush"](state, 1)
    with waiving("log", frozenset({"log/bytes-are-written"})):
        assert SPECS["log"].actions["flush"](state, 1).flushed == 1


def test_a_case_distinction_and_an_assumption_are_no_rules() -> None:
    with pytest.raises(Refused) as refused:
        SPECS["log"].deviations[0].step(SPECS["log"].initial, *(0,) * 8)
    assert refused.value.rule == APPLIES
    with pytest.raises(Refused) as refused:
        assume(1 > 2, because="the disk keeps what it stored")  # noqa: PLR0133
    assert refused.value.rule == ASSUMED
    assert not {APPLIES, ASSUMED} & {rule.id.partition("/")[2] for rule in rules()}


def test_every_need_is_a_rule_with_a_reason() -> None:
    known = {rule.id: rule for rule in rules()}
    for name in SPECS:
        for reason in kernel(name).reasons:
            is_a_rule = not reason.rule.endswith(f"/{ASSUMED}")
            assert reason.rule in known or reason.step != reason.action or not is_a_rule, reason
    assert len(known) == len(rules())
    assert all(rule.otherwise and rule.source for rule in rules())
    assert not any(rule.because.endswith(".") for rule in rules())


def test_specs_are_found_by_what_they_state() -> None:
    folder = Path(ring.__file__).parent
    stating = {path.stem for path in folder.glob("*.py") if "\nACTIONS = (" in path.read_text(encoding="utf-8")}
    assert list(SPECS) == sorted(stating)
    assert spec_from(ring, laws=SPECS["ring"].laws) == SPECS["ring"]
    with pytest.raises(ValueError, match=r"language is no spec: it has no INITIAL and no ACTIONS and no INVARIANTS"):
        spec_from(language)


def test_a_spec_is_not_made_of_what_pytest_puts_into_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = SPECS["broker"]
    files = spec.files
    monkeypatch.setitem(vars(spec.module), "@py_builtins", builtins)
    assert spec.files == files
    assert len(files) > 1
