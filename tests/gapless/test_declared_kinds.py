"""Functions declare the kinds with which Python calls them: `gapless warm` compiles all that checks and stores call.

What is called is looked at in a process of its own, where no other test has loaded anything before.
"""

import itertools
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest

from gapless import check
from gapless.compiling import packages
from gapless.impl.workloads.workload import Workload
from gapless.native import BYTES, INTS, Native, function
from gapless.native.kinds import Signature
from gapless.native.objects.object_code import ObjectCode
from gapless.native.signatures import entries_of, modules_of
from gapless.runs.recording import STORE, TRACES, RunOptions, run
from gapless.traces.events.lines import plain_lines
from gapless.traces.replay.kernels import Loop
from gapless.traces.sources.kafka.judging import event_order
from gapless.traces.sources.rocketmq.store.directory import store_folder
from gapless.traces.sources.rocketmq.store.file_access import names_of_records
from gapless.traces.sources.rocketmq.store.opening import open_store
from gapless.traces.sources.rocketmq.watching.tail import Tail
from tests.support.kafka.recordings import recording
from tests.support.night import NIGHT
from tests.support.rocketmq.recordings import RECORDINGS, WITH_CLIENTS, recording_as_left, recording_with_client
from tests.support.store_uses import USES

pytestmark = pytest.mark.xdist_group("declared kinds")  # one worker, so that all is called once

LAYOUTS = [
    f"layouts/{max(names)}"
    for _, names in itertools.groupby(
        sorted(file.name.removesuffix(".tar.xz") for file in RECORDINGS.glob("layouts/*.xz")),
        lambda name: name.split("_")[0],
    )
]
"""The last of each layout."""
BY_NIGHT = pytest.mark.skipif(not NIGHT, reason="compiles all; a kind that is missing costs time, no verdict")
TRACED = "traced/clean_5.5.0"
KAFKA = "3.3.2-codecs-txn"


class Calls(NamedTuple):
    """The functions that were called, and those that declare other kinds.

    Each with the kinds that were met.
    """

    names: set[str]
    undeclared: list[str]


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory) -> Calls:
    """Stores of all layouts are checked, Kafka's logs too, and our own store is used."""
    stores = [*map(recording_as_left, (*LAYOUTS, TRACED)), *map(recording_with_client, WITH_CLIENTS[:2])]
    return _apart(everything, stores, recording(KAFKA), tmp_path_factory.mktemp("recorded"))


@BY_NIGHT
def test_nothing_is_called_with_other_kinds_than_it_declares(called: Calls) -> None:
    assert len(LAYOUTS) > 15
    assert called.undeclared == []


@BY_NIGHT
def test_every_function_that_declares_kinds_is_called(called: Calls) -> None:
    declared = {f"{name}.{entry.__qualname__}" for name in modules_of(*packages()) for entry in entries_of(name)}
    assert len(declared) > 60
    assert declared - called.names == set()


def test_what_is_called_with_other_kinds_is_found() -> None:
    assert _apart(called_otherwise).undeclared == [f"{__name__}.twice: {(INTS,)}"]


def test_every_module_with_such_functions_is_compiled_beforehand() -> None:
    assert set(modules_of("gapless.impl", "gapless.traces")) <= set(modules_of(*packages()))


def _apart(use: Callable[..., None], *args: Any) -> Calls:
    """All that is called, and compiled or loaded for it."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_called, use, args).result()


def _called(use: Callable[..., None], args: tuple[Any, ...]) -> Calls:
    Native.few, Loop.few, plain_lines.MANY, event_order.MANY = -1, 0, 0, 0
    with _loads() as loads:
        use(*args)
    names = {code._name for code, _ in loads}
    return Calls(names, [f"{code._name}: {kinds}" for code, kinds in loads if kinds not in code._of.kinds])


@contextmanager
def _loads() -> Iterator[list[tuple[ObjectCode, Signature]]]:
    """Every choice of kinds for which a function is compiled, or loaded, within the block."""
    found = list[tuple[ObjectCode, Signature]]()
    load = ObjectCode._load

    def noted(code: ObjectCode, kinds: Signature) -> Callable[..., Any]:
        found.append((code, kinds))
        return load(code, kinds)

    with mock.patch.object(ObjectCode, "_load", noted):
        yield found


def everything(stores: list[Path], logs: Path, room: Path) -> None:
    """All that follows."""
    checked(stores)
    check([logs], jobs=1)
    recorded(room)
    for use in USES:
        use()


def checked(stores: list[Path]) -> None:
    """Check stores, and watch them."""
    for store in stores:
        check([store], jobs=1)
        check([store], jobs=1, ignore=["log"])  # what workers find counts only if all of a log is judged
        opened = open_store(store_folder(store) or store)
        Tail().stretch(opened, opened.start)
        list(names_of_records(opened, np.array([opened.start])))


def recorded(folder: Path) -> None:
    """Record our own store, with threads, and on a disk that loses power; and check all that it wrote."""
    for name, lost in (("threads", frozenset[str]()), ("lost", frozenset({"crash"}))):
        workload = Workload(messages=1_000, seed=1, transactions=True)
        run(
            folder / name,
            RunOptions(workload, 8, synchronous=False, workers=2, overlap=True, faults=lost, form="ndjson"),
        )
        check([folder / name / STORE, folder / name / TRACES / "recorded.ndjson"], jobs=1, split=1 << 16)


def called_otherwise() -> None:
    """Call it with whole numbers."""
    twice(np.zeros(3, np.int64))


@function(kinds=(BYTES,))
def twice(column: Any) -> int:
    """Twice the length of a column."""
    return 2 * len(column)
