"""Traces of a spec that has Maps of two keys, and counts: the kernel reports what the plain functions do."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from gapless.spec.catalog import Spec
from gapless.spec.language import Refused
from gapless.traces.check import check
from gapless.traces.judging.batches import Begun, state_of
from gapless.traces.replay import kernels
from gapless.traces.replay.kernels import EXACT, Kernel, Loop, ReplayResult, kernel
from gapless.traces.specs import load

COPIES = '''"""Copies of writes at replicas; a write is acknowledged once most replicas have it."""

from dataclasses import dataclass
from typing import NewType

from gapless.spec.language import Map, all_between, applies, count_between, replace, require

Replica = NewType("Replica", int)
Write = NewType("Write", int)
REPLICAS = 3


@dataclass(frozen=True, slots=True)
class State:
    """The log and its copies."""

    end: Write = Write(0)
    acknowledged: Write = Write(0)
    stored: Map[Replica, Write, int] = Map(-1)
    size: Map[Write, int] = Map(0)
    full: Map[Write, Replica, bool] = Map(False)


def append(s: State, size: int) -> State:
    """A producer adds a write."""
    return replace(s, end=s.end + 1, size=s.size.set(s.end, size))


def store(s: State, replica: Replica, write: Write, size: int) -> State:
    """A replica stores a write."""
    require(write < s.end, "write-is-there", because="the write is there", otherwise="it is made up")
    require(s.size[write] == size, "copy-is-whole", because="the copy is whole", otherwise="readers differ")
    require(s.stored[replica, write] == -1, "copy-is-new", because="the copy is new", otherwise="it is stored twice")
    return replace(s, stored=s.stored.set(replica, write, size), full=s.full.set(write, replica, size > 7))


def acknowledge(s: State, write: Write) -> State:
    """The producer hears of it."""
    require(write == s.acknowledged, "writes-are-in-order", because="writes are in order", otherwise="one is skipped")
    require(
        REPLICAS < 2 * count_between(0, REPLICAS, lambda n: s.stored[Replica(n), write] != -1),
        "most-replicas-have-it",
        because="most replicas have the write",
        otherwise="a new leader may not have it",
    )
    return replace(s, acknowledged=write + 1)


def lose(s: State, replica: Replica, write: Write) -> State:
    """A replica loses a copy that no producer counts on."""
    applies(s.acknowledged <= write)
    return replace(s, stored=s.stored.set(replica, write, -1), full=s.full.set(write, replica, False))


def reset(s: State) -> State:
    """All copies are lost."""
    applies(all_between(0, REPLICAS, lambda n: all_between(0, s.end, lambda m: not s.full[Write(m), Replica(n)])))
    return replace(s, stored=s.stored.cleared(), full=s.full.cleared(), end=0, acknowledged=0, size=s.size.cleared())


def acknowledged_writes_are_there(s: State) -> bool:
    """Otherwise a producer counts on nothing."""
    return s.acknowledged <= s.end


INITIAL = State()
ACTIONS = (append, store, acknowledge, lose, reset)
INVARIANTS = (acknowledged_writes_are_there,)
'''

Events = list[tuple[str, dict[str, int]]]


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    path = tmp_path / "copies.py"
    path.write_text(COPIES, encoding="utf-8")
    return load(path)


def life(spec: Spec, random: Random, length: int, *, wrong: bool) -> Events:
    """Events that a system may take, and perhaps one that it may not."""
    state, found = spec.initial, list[tuple[str, dict[str, int]]]()
    while len(found) < length:
        name = random.choice(["append", "store", "store", "store", "store", "acknowledge", "lose", "reset"])
        args = {"replica": random.randrange(3), "write": random.randrange(max(int(state.end), 1)), "size": 5}
        args["size"] = int(state.size[args["write"]]) if name == "store" else random.randrange(1, 10)
        args["write"] = int(state.acknowledged) if name == "acknowledge" else args["write"]
        given = {one: args[one] for one in spec.parameters[name]}
        try:
            state = spec.actions[name](state, **given)
        except Refused as refused:
            if wrong and refused.rule != "step-applies-here" and len(found) > length // 2:
                found.append((name, given))
                wrong = False
            continue
        found.append((name, given))
    return found


def written(path: Path, lives: Sequence[Events], random: Random) -> Path:
    """Traces whose events lie in between one another."""
    turns = [number for number, events in enumerate(lives) for _ in events]
    random.shuffle(turns)
    rest = [iter(enumerate(events)) for events in lives]
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps({"schema": "gapless-events", "version": 1}) + "\n")
        for number in turns:
            at, (action, args) = next(rest[number])
            line = {"source": "a", "spec": "copies", "trace": f"t{number}", "position": at}
            file.write(json.dumps({**line, "action": action, "args": args}) + "\n")
    return path


def reported(path: Path, spec: Spec, **more: Any) -> Any:
    """All that a report says, but for its times and notes."""
    report = check([path], specs=[spec], jobs=1, **more)
    found = json.loads(report.as_json())
    return {key: found[key] for key in ("verdict", "counts", "findings")}, report.sources[0].notes


@pytest.mark.parametrize("few", [0, 1 << 60], ids=["native", "python"])
def test_the_report_is_that_of_the_plain_functions(
    few: int, spec: Spec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one piece, and in pieces: then tables are saved and loaded again."""
    random = Random(7)
    lives = [life(spec, random, random.choice((3, 30, 90)), wrong=n % 5 == 4) for n in range(60)]
    path = written(tmp_path / "copies.ndjson", lives, random)
    monkeypatch.setattr(Loop, "few", few)
    whole, notes = reported(path, spec)
    assert not any("plain functions" in note for note in notes)
    assert whole["verdict"] == "departs"
    assert reported(path, spec, split=path.stat().st_size // 7)[0] == whole
    exact = Kernel(spec, kernel(spec).reasons, kernels._leave_all, "they are asked")
    for module in list(all_modules()):
        monkeypatch.setattr(module, "kernel", lambda *_: exact)
    plain, notes = reported(path, spec)
    assert any("they are asked" in note for note in notes)
    assert plain == whole


def all_modules() -> Iterator[Any]:
    """The modules that ask for a kernel."""
    return (
        one for name, one in sys.modules.items() if name.startswith("gapless.") and getattr(one, "kernel", 0) is kernel
    )


def replayed(spec: Spec, events: Events, width: int, begun: Begun | ReplayResult | None = None) -> ReplayResult:
    """The events of one trace, by its kernel, with room for so many elements."""
    args = np.zeros((len(spec.arguments), len(events)), np.int64)
    for at, (_, given) in enumerate(events):
        for name, value in given.items():
            args[spec.arguments.index(name), at] = value
    begun = begun or Begun.new(spec, 1)
    return kernel(spec).replay(
        np.array([0, len(events)], np.int64), np.array([spec.codes[name] for name, _ in events], np.int8), args,
        begun.state, origins=np.zeros(1, np.int64), widths=np.full(1, width, np.int64), cells=begun.cells,
        resumable=True, profile="strict",
    )  # fmt: skip


def stores(writes: int) -> Events:
    """So many writes, and a copy of each."""
    append = [("append", {"size": 5})] * writes
    return append + [("store", {"replica": 0, "write": write, "size": 5}) for write in range(writes)]


@pytest.mark.parametrize("few", [0, 1 << 60], ids=["native", "python"])
def test_a_table_that_is_full_leaves_its_trace_to_the_plain_functions(
    few: int, spec: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No element is lost, and none written where there is no room."""
    monkeypatch.setattr(Loop, "few", few)
    assert [int(replayed(spec, stores(5), width).bad_why[0]) for width in (4, 5)] == [EXACT, 0]


def test_elements_that_have_the_default_again_take_no_room_in_the_next_piece(spec: Spec) -> None:
    lost = [("lose", {"replica": 0, "write": write}) for write in range(4)]
    first = replayed(spec, [*stores(5), *lost], 5)
    again = replayed(spec, [("store", {"replica": 2, "write": write, "size": 5}) for write in range(4)], 5, first)
    assert not first.bad_why.any()
    assert not again.bad_why.any()
    assert again.cells
    state = state_of(spec, again.state[:, 0], again.cells)
    assert dict(state.stored.entries) == {(0, 4): 5, **{(2, write): 5 for write in range(4)}}


@pytest.mark.parametrize(
    "keys", [(0, 1, 2, 3), (-1, 0, 1 << 59, -(1 << 59)), (5, 5 + (1 << 30), 5 + (1 << 32), 5 + (7 << 40))]
)
def test_keys_are_distinguished_wherever_they_lie(keys: tuple[int, ...], spec: Spec) -> None:
    events: Events = [("lose", {"replica": a, "write": b}) for a in keys for b in keys if b >= 0]
    events = (
        [("append", {"size": 5})] * 4
        + [("store", {"replica": a, "write": b, "size": 5}) for a in keys for b in keys if 0 <= b < 4]
        + events[:3]
    )
    found = replayed(spec, events, 64)
    state, cells = spec.initial, found.cells
    assert cells
    for name, given in events:
        state = spec.actions[name](state, **given)
    reached = state_of(spec, found.state[:, 0], cells)
    assert dict(reached.stored.entries) == dict(state.stored.entries)
    assert not found.bad_why.any()
