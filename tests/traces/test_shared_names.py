"""Traces that several stretches share are found by tasks where the driver has no room for all names.

The engine of these tests is a cluster in this process: what it ships is counted. That of Spark is in `test_spark`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.traces.check import InputCheck
from gapless.traces.engines.engine import Answer, Item, P
from gapless.traces.engines.local import Local
from gapless.traces.inputs import Input
from gapless.traces.options import Options
from gapless.traces.report.outputs.verdict_table import TableRows
from gapless.traces.sources.event_files import file as event_file
from gapless.traces.sources.event_files.file import EventFile
from gapless.traces.sources.event_files.shared_names import HashPack, NamedStretch, ship_names
from gapless.traces.sources.event_files.source import SOURCE
from gapless.traces.sources.event_files.stretches import NO_HASHES
from tests.support.event_files import ODD, cut, mixed_traces, table_in, write

LIMITS = {"few": {}, "many": {"NAMES_OF_ONE": 0}, "many, and most of them shared": {"NAMES": 0}}


class Far(Local):
    """Tasks whose answers travel far, though they run here."""

    shipped: list[Any]

    def __init__(self, shipped: list[Any] | None = None) -> None:
        super().__init__(1, near=False, handed_on=8)
        object.__setattr__(self, "shipped", [] if shipped is None else shipped)

    def gather(
        self,
        task: Callable[[Item], tuple[Answer, Sequence[P]]],
        items: Sequence[Item],
        known: Sequence[P],
        join: Callable[[Sequence[P]], Answer],
    ) -> Iterator[Answer]:
        """See `Engine`."""
        shipped = self.shipped

        def noted(item: Item) -> tuple[Answer, Sequence[P]]:
            answer, parts = task(item)
            shipped.extend(parts)
            return answer, parts

        return super().gather(noted, items, known, join)


def outcome(path: Path, engine: Local, split: int) -> tuple[Any, ...]:
    """The row of a file, its part of the report, and its table."""
    options = Options(profile="strict", listed=True, split=split)
    one = InputCheck(Input(path, path, SOURCE), options)
    with tempfile.TemporaryDirectory() as folder:
        one._judge(EventFile(path, path, one.options, TableRows(Path(folder), "000")), engine)
        return one.source, one.parts, table_in(Path(folder))


def limited(patch: pytest.MonkeyPatch, limits: str) -> None:
    for name, value in LIMITS[limits].items():
        patch.setattr(event_file, name, value)


@settings(max_examples=max(4, settings().max_examples // 10))
@given(
    kinds=st.lists(st.integers(0, len(ODD) - 1), min_size=4, max_size=30),
    mingled=st.sampled_from([1, 2, 5, 100]),
    size=st.integers(1, 8),
    suffix=st.sampled_from([".ndjson", ".parquet"]),
    limits=st.sampled_from([*LIMITS]),
)
def test_a_cluster_says_the_same_however_few_names_reach_the_driver(
    kinds: list[int], mingled: int, size: int, suffix: str, limits: str
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder) / f"events{suffix}"
        write(path, mixed_traces(kinds, mingled=mingled))
        if suffix == ".parquet":
            cut(path, 3 * size)
        split = 1 if suffix == ".parquet" else 400 * size
        expected = outcome(path, Local(1), split)
        limited(patch, limits)
        assert outcome(path, Far(), split) == expected


def test_names_are_shuffled_where_they_are_many_and_all_events_where_most_are_shared(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    write(path, mixed_traces([0] * 40, mingled=2))
    cut(path, 10)
    names, events, expected = {}, {}, outcome(path, Local(1), 1)
    for limits in LIMITS:
        shipped: list[Any] = []
        with pytest.MonkeyPatch.context() as patch:
            limited(patch, limits)
            assert outcome(path, Far(shipped), 1) == expected
        names[limits] = sum(isinstance(part, HashPack) for part in shipped)
        events[limits] = len(shipped) - names[limits]
    few, many, most = LIMITS
    assert names[few] == 0 < names[many] == names[most]
    assert 0 < events[few] == events[many] < events[most]


def test_columns_of_events_are_not_read_for_their_names(tmp_path: Path) -> None:
    """Lines have none, but the same names."""
    found = []
    for suffix in (".parquet", ".ndjson"):
        path = tmp_path / f"events{suffix}"
        write(path, mixed_traces([*range(len(ODD))] * 2, mingled=3))
        recording = EventFile(path, path, Options(profile="strict"), None)
        stretch = NamedStretch(recording.splits[0], NO_HASHES)
        _, packs = ship_names(recording._work(Far()), 4, stretch)
        assert 1 < len(packs) <= 4
        assert sum(pack.size for pack in packs) == 8 * 2 * len(ODD)
        found.append([(pack.bucket, sorted(memoryview(pack.whole).cast("Q"))) for pack in packs])
    assert found[0] == found[1]


def test_an_interrupt_accuses_no_half_of_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the names nothing is known of which traces are whole."""
    path = tmp_path / "events.parquet"
    write(path, mixed_traces([1] * 40, mingled=2))
    cut(path, 12)
    for limits, departing in (("few", 1), ("many", 0)):
        with monkeypatch.context() as patch:
            limited(patch, limits)
            recording = EventFile(path, path, Options(profile="strict", split=1), None)
            task = recording.task(Far())
            for split in recording.splits[:3]:
                recording.take(task(split))
            assert bool(recording.so_far().violations) == bool(departing)
