"""Traces judged piece by piece have the verdict, counts and story of the same traces judged whole."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless import Report, check
from gapless.spec.catalog import SPECS, Spec
from gapless.traces.events import reading, schema
from gapless.traces.judging.batches import Begun
from gapless.traces.judging.findings import explaining
from gapless.traces.judging.streaming import in_order, open_traces, packed_map_cells
from gapless.traces.judging.streaming.open_traces import OpenTraces
from gapless.traces.judging.streaming.packed_map_cells import PackedMapCells
from gapless.traces.processes.timeouts import uninterrupted
from gapless.traces.replay.kernels import NO_CELLS, Cells, Ints, Numbers, ReplayResult, kernel
from gapless.traces.sources.event_files import file, stretches
from tests.support.event_files import LOG, ODD, UnplacedEvent, in_log, mixed_traces, table_in
from tests.support.night import NIGHT
from tests.support.walks import SOME_READINGS, Offer, drawing, walk

KEYS = range(-8, 392)


# -- kernels -------------------------------------------------------------------------------------------------------


@SOME_READINGS
@given(data=st.data())
def test_a_kernel_continues_where_it_was(spec: Spec, profile: str, data: st.DataObject) -> None:
    """A trace cut in two has the state, the refusal and the counts of the whole."""
    offers = list(walk(spec, profile, drawing(data), length=12))
    cuts = [data.draw(st.integers(0, len(offer.path))) for offer in offers]
    whole = replayed(spec, profile, offers, [0] * len(offers), None)
    first = replayed(spec, profile, offers, cuts, None, end=True)
    assert not first.bad_why.any() or (first.bad_why <= 0).all(), "what leads to an offer is taken"
    assert first.cells is not None
    sure = first.bad_why == 0
    begun = Begun(np.array(cuts, np.int64), first.state, first.cells)
    second = replayed(spec, profile, offers, cuts, begun)
    assert second.bad_why[sure].tolist() == whole.bad_why[sure].tolist()
    accepted = sure & (whole.bad_why >= 0)
    assert second.state[:, accepted].tolist() == whole.state[:, accepted].tolist()
    assert (first.covered + second.covered).tolist() == whole.covered.tolist() or not sure.all()


@given(data=st.data())
def test_a_kernel_continues_with_maps_that_are_resident(data: st.DataObject) -> None:
    """One trace cut in two, whose slots stay where they are, in half the bytes."""
    spec = SPECS["hash_index"]
    offers = list(walk(spec, "rocketmq", drawing(data), length=12))
    resident = np.full((len(KEYS) + 1, 1), 0, np.int32)
    for offer in offers:
        cut = data.draw(st.integers(0, len(offer.path)))
        whole = replayed(spec, "rocketmq", [offer], [0], None)
        resident[:] = 0
        first = replayed(spec, "rocketmq", [offer], [cut], None, end=True, resident=resident)
        second = replayed(
            spec, "rocketmq", [offer], [cut], Begun(np.array([cut]), first.state, NO_CELLS), resident=resident
        )
        if first.bad_why[0] == 0:
            assert second.bad_why.tolist() == whole.bad_why.tolist()
            assert second.state.tolist() == whole.state.tolist()
            assert whole.cells is not None
            assert resident[:-1, 0].tolist() == whole.cells.values[0].tolist()


def replayed(
    spec: Spec,
    profile: str,
    offers: list[Offer],
    cuts: list[int],
    begun: Begun | None,
    *,
    end: bool = False,
    resident: Numbers | None = None,
) -> ReplayResult:
    """Replay the events from each cut on, or before it; final Map contents are requested at a cut, or if `resident`."""
    traces = [[*offer.path, offer.event] for offer in offers]
    some = [trace[:cut] if end else trace[cut:] for trace, cut in zip(traces, cuts, strict=True)]
    events = [event for trace in some for event in trace]
    args = np.zeros((len(spec.arguments), len(events)), np.int64)
    for at, (name, values) in enumerate(events):
        for argument, value in zip(spec.parameters[name], values, strict=True):
            args[spec.arguments.index(argument), at] = value
    begin: Begun = begun or Begun.new(spec, len(offers))
    return kernel(spec).replay(
        np.cumsum([0, *map(len, some)], dtype=np.int64),
        np.array([spec.codes[name] for name, _ in events], np.int8),
        args,
        begin.state,
        origins=np.full(len(offers), KEYS[0], np.int64),
        widths=np.full(len(offers), len(KEYS), np.int64),
        cells=None if resident is not None else begin.cells,
        resumable=resident is None,
        resident=resident,
        profile=profile,
    )


def test_a_kernel_that_looks_below_what_it_was_given_says_so() -> None:
    spec = SPECS["dispatch"]
    cells = PackedMapCells(spec)
    cells.grow(1)
    steps = [("take", 3), ("take", 1), ("write", 1), ("crash", 1)]
    found = []
    for cut in (True, False):
        given_ = cells.of(np.zeros(1, np.int64))
        given_.cut[:] = cut
        state = dict.fromkeys(spec.scalars, 0) | {"lives": 1, "overlap": 1, "scanned": 9, "at": -1}
        for name, number in steps:
            args = np.zeros((len(spec.arguments), 1), np.int64)
            args[:] = number
            of = kernel(spec).replay(
                np.array([0, 1], np.int64), np.array([spec.codes[name]], np.int8), args,
                np.array([[state[scalar]] for scalar in spec.scalars], np.int64), origins=np.full(1, 2, np.int64),
                widths=np.full(1, 5, np.int64), cells=given_, resumable=True, profile="strict",
            )  # fmt: skip
            found.append(int(of.bad_why[0]))
    assert found[:4] == [0, -1, -1, -1]
    assert found[4] == 0


# -- files ---------------------------------------------------------------------------------------------------------


@dataclass
class CallCount:
    """A counter of calls."""

    in_order: int = 0
    below: int = 0


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> CallCount:
    """Pretend that memory is small: pieces are judged at once, and few Map cells are hot."""
    counted = CallCount()
    for module, name, value in (
        (in_order, "WAITING", 1), (in_order, "REREAD", 50), (file, "MANY", 2),
        (packed_map_cells, "LONG", 8), (packed_map_cells, "AT_HAND", 2), (packed_map_cells, "LEFT", 10),
        (open_traces, "SLICE", 1),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    takes, whole = OpenTraces.take, PackedMapCells.whole

    def take(self: OpenTraces, traces: Any) -> Ints:
        counted.in_order += 1
        return takes(self, traces)

    def asked(self: PackedMapCells, places: Ints) -> Any:
        counted.below += bool(self.cold.keys() & set(places.tolist()))
        return whole(self, places)

    monkeypatch.setattr(OpenTraces, "take", take)
    monkeypatch.setattr(PackedMapCells, "whole", asked)
    return counted


def report_and_rows(path: Path, room: Path, **how: Any) -> tuple[dict[str, Any], list[Any]]:
    """The report, and the verdict of every trace."""
    report: Report = check([path], jobs=1, verdicts=room, **how)
    rows = sorted(table_in(room), key=lambda row: (row["spec"], row["trace"]))
    return report.model_dump(exclude={"seconds"}), rows


def dispatched(seed: int, events: int = 600, queues: int = 3, *, sure: bool = False) -> Iterator[dict[str, Any]]:
    """Yield queues built by several workers, with wrong events, and unless `sure` unknown or observed ones."""
    random = Random(seed)
    for queue in range(queues):
        yield queue_event("open", queue, number=0, overlap=1)
    scanned, committed = [0] * queues, [0] * queues
    while events > 0:
        queue = random.randrange(queues)
        first = scanned[queue]
        numbers = list(range(first, first + random.randint(1, 4)))
        steps = [("scan", {"number": n}) for n in numbers]
        random.shuffle(numbers)
        steps += [(name, {"number": n}) for n in numbers for name in ("take", "write")]
        scanned[queue] = committed[queue] = first + len(numbers)
        steps += [("commit", {"to": committed[queue]}), ("flush", {"to": committed[queue]})]
        if random.random() < 0.02:
            steps.append(("take", {"number": random.randrange(committed[queue])}))
        for name, args in steps:
            more: dict[str, Any] = {}
            if random.random() < 0.004 and not sure:
                more["outcome"] = random.choice(["unknown", "refused"])
            if random.random() < 0.004 and name == "commit" and not sure:
                more["saw"] = {"committed": args["to"] + random.choice([0, 0, 1])}
            yield queue_event(name, queue, **args) | more
            events -= 1


def queue_event(action: str, queue: int, **args: int) -> dict[str, Any]:
    return {"source": "s", "spec": "dispatch", "trace": f"q/{queue}", "action": action, "args": args}


def written(path: Path, events: Iterator[dict[str, Any]]) -> Path:
    lines = [{"schema": "gapless-events", "version": 1}, *({"position": n} | one for n, one in enumerate(events))]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("seed", range(60 if NIGHT else 4))
def test_a_file_judged_in_order_is_judged_as_whole(tmp_path: Path, little: CallCount, seed: int) -> None:
    path = written(tmp_path / "events.ndjson", dispatched(seed))
    whole = report_and_rows(path, tmp_path / "whole", split=1 << 30)
    assert not little.in_order
    cut = report_and_rows(path, tmp_path / "cut", split=path.stat().st_size // 12)
    assert cut == whole
    assert little.in_order > 12 // 2
    assert little.below


@pytest.mark.parametrize(("mingled", "profile"), [(3, "strict"), (len(ODD) * 3, "strict"), (len(ODD) * 3, "rocketmq")])
def test_traces_of_every_kind_in_order_are_judged_as_whole(
    tmp_path: Path, little: CallCount, mingled: int, profile: str
) -> None:
    events: list[UnplacedEvent] = mixed_traces([*range(len(ODD))] * 3, mingled=mingled)
    for at, one in enumerate(LOG):
        events.insert(5 * at, one)
    path = tmp_path / "events.ndjson"
    schema.write_events(path, [one(at) for at, one in enumerate(events)])
    whole = report_and_rows(path, tmp_path / "whole", split=1 << 30, profile=profile)
    cut = report_and_rows(path, tmp_path / "cut", split=path.stat().st_size // 15, profile=profile)
    assert cut == whole
    assert little.in_order
    assert {row["verdict"] for row in whole[1]} == {"conforms", "departs", "inconclusive"}


@pytest.mark.parametrize("seed", [1, 4])
def test_a_long_trace_has_the_story_of_its_last_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Kernels replay what no story reaches back to: here all but the last 60 events, which are enough for these."""
    path = written(tmp_path / "events.ndjson", dispatched(seed, events=900, queues=1, sure=True))
    whole, _ = report_and_rows(path, tmp_path / "whole")
    assert whole["findings"]
    reached = explaining._reached
    asked = []

    def counted(traces: Any, options: Any) -> Any:
        asked.append(len(traces.of))
        return reached(traces, options)

    monkeypatch.setattr(explaining, "REMEMBERED", 60)
    monkeypatch.setattr(explaining, "_reached", counted)
    assert report_and_rows(path, tmp_path / "again")[0] == whole
    assert asked
    assert min(asked) > 60


@pytest.mark.parametrize("codec", ["gz", "zst"])
@pytest.mark.parametrize("seed", [0, 3])
def test_a_compressed_file_is_judged_as_it_is_read(
    tmp_path: Path, little: CallCount, monkeypatch: pytest.MonkeyPatch, codec: str, seed: int
) -> None:
    path = written(tmp_path / "events.ndjson", dispatched(seed))
    whole = report_and_rows(path, tmp_path / "whole", split=1 << 30)
    assert not little.in_order
    monkeypatch.setattr(stretches, "PIECE", 40)
    monkeypatch.setattr(reading, "coded", in_small_batches)
    packed = tmp_path / f"events.ndjson.{codec}"
    with pa.CompressedOutputStream(str(packed), "gzip" if codec == "gz" else "zstd") as out:
        out.write(path.read_bytes())
    os.utime(packed, ns=(0, path.stat().st_mtime_ns))  # a report is dated by its file
    cut = report_and_rows(packed, tmp_path / "cut")
    assert little.in_order > 12
    assert json.dumps(cut).replace(f".{codec}", "") == json.dumps(whole).replace(
        f'"bytes": {path.stat().st_size}', f'"bytes": {packed.stat().st_size}'
    )


def in_small_batches(path: Path, stretch: Any, of: Any, **_how: Any) -> Iterator[Any]:
    """Read in many batches, like a large file."""
    for batch in reading.read(path, stretch, of):
        for low in range(0, batch.num_rows, 20):
            yield of.coded(batch.slice(low, 20))


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("before", [0, 40])
def test_the_first_to_depart_has_a_story_wherever_its_trace_lies(
    tmp_path: Path, little: CallCount, before: int, first: int
) -> None:
    """A kernel takes some traces after others, though these may depart in later rows."""
    good = [
        queue_event(name, queue, number=n)
        for n in range(before)
        for name in ("scan", "take", "write")
        for queue in (0, 1)
    ]
    bad = [queue_event("take", queue, number=before + 7) for queue in (first, 1 - first)]
    events = [*(queue_event("open", queue, number=0, overlap=1) for queue in (0, 1)), *good, *bad, *bad]
    path = written(tmp_path / "events.ndjson", iter(events))
    whole = report_and_rows(path, tmp_path / "whole", split=1 << 30)
    cut = report_and_rows(path, tmp_path / "cut", split=path.stat().st_size // 3)
    assert cut == whole
    assert little.in_order
    (finding,) = whole[0]["findings"]
    assert (finding["trace"], finding["count"], finding["where"]["offset"]) == (f"q/{first}", 2, 2 + 2 + len(good))


def test_unobserved_steps_are_reported_in_the_order_of_their_spec(tmp_path: Path, little: CallCount) -> None:
    """Not in that in which pieces of the file had them."""
    events = [
        *LOG[:3],
        in_log("checkpoint", 9, outcome="inferred"),
        *(in_log("acknowledge", 0) for _ in range(20)),
        in_log("flush", 200, outcome="inferred"),
    ]
    path = tmp_path / "events.ndjson"
    schema.write_events(path, [one(at) for at, one in enumerate(events)])
    whole = report_and_rows(path, tmp_path / "whole", split=1 << 30)
    assert report_and_rows(path, tmp_path / "cut", split=path.stat().st_size // 8) == whole
    assert little.in_order
    inferred = [one.partition(":")[0] for one in whole[0]["not_exercised"] if "is inferred" in one]
    assert inferred == ["log.flush", "log.checkpoint"]


def test_an_event_behind_a_later_one_is_found_across_pieces(tmp_path: Path, little: CallCount) -> None:
    events = [event | {"position": at} for at, event in enumerate(dispatched(1))]
    of = [at for at, event in enumerate(events) if event["trace"] == "q/1"]
    events[of[-2]]["position"] = 7
    path = written(tmp_path / "events.ndjson", iter(events))
    report, _ = report_and_rows(path, tmp_path / "cut", split=path.stat().st_size // 12)
    assert report["sources"][0]["verdict"] == "unreadable"
    assert f"line {of[-2] + 2}: position 7 of q/1 is lower than the one before" in report["sources"][0]["reasons"][0]
    assert little.in_order


def test_an_interrupt_between_pieces_tells_what_was_judged(
    tmp_path: Path, little: CallCount, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "events.ndjson", dispatched(2))
    take_events = OpenTraces.take

    def impatient(self: OpenTraces, traces: Any) -> Ints:
        if little.in_order > 5:
            with uninterrupted():
                raise KeyboardInterrupt
        return take_events(self, traces)

    monkeypatch.setattr(OpenTraces, "take", impatient)
    report = check([path], jobs=1, split=path.stat().st_size // 12)
    assert report.interrupted
    assert report.counts.traces == 3
    assert 0 < report.counts.events < 600


def test_what_lies_below_is_put_aside_and_found_again() -> None:
    cells = PackedMapCells(SPECS["op_batch"])
    cells.grow(3)
    places = np.array([2, 0], np.int64)
    wide = packed_map_cells.LONG + 10
    values = np.arange(2 * (wide + 4), dtype=np.int64).reshape(2, -1)
    values[1] = 7
    starts = np.array([0, wide, wide + 4], np.int64)
    cells.put(places, Cells(np.array([5, 7], np.int64), starts, values, np.zeros(2, np.bool_)), whole=False)
    cells.tidy()
    at_hand = cells.of(places)
    assert at_hand.cut.tolist() == [True, False]
    assert at_hand.widths.tolist() == [packed_map_cells.AT_HAND, 4]
    assert at_hand.origins.tolist() == [5 + wide - packed_map_cells.AT_HAND, 7]
    numbers, alike = cells.cold[2][0].values
    assert (numbers.strides, alike.strides) == ((2,), (0,)), "what is alike is resident once"
    again = cells.whole(places)
    assert again.values.tolist() == values.tolist()
    assert (again.origins.tolist(), again.starts.tolist()) == ([5, 7], starts.tolist())
    cells.put(places[:1], again.of(np.array([True, False])), whole=True)
    assert not cells.cold
    cells.forget(places)
    assert not cells.of(places).values.size
    assert all(low <= high for low, high in pairwise(cells.of(np.arange(3)).starts.tolist()))
