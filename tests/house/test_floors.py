"""Inside the rooms: no circle of imports, and no arrow from a lower floor to a higher one."""

import pytest

from tests.house import debts
from tests.house.arrows import between_floors, circles
from tests.house.project import Module, listed, modules, product
from tests.house.samples import module

FLOORS = {
    "native": (
        *("kinds", "texts", "outlines", "language", "intrinsics", "big_endian"),
        *("compiler", "objects", "policy", "swar", "signatures", "bounds_checks"),
        *("program_generator", "fuzzer", "__init__"),
    ),
    "impl": (
        *("environment", "records", "files", "dispatch", "recorder", "coordinator"),
        *("transactions", "store", "subject", "workloads"),
    ),
    "traces": (
        *(
            "suggestions",
            "specs",
            "problems",
            "processes",
            "files",
            "validation",
            "options",
            "evidence",
            "events",
            "replay",
            "rules",
            "steps",
            "report",
        ),
        *(
            "judging",
            "engines",
            "sources",
            "inputs",
            "check",
            "watch",
            "compare",
            "export",
            "stories",
            "schemas",
            "spark",
        ),
    ),
    "properties": (
        *("processes", "simulation", "campaign", "proof", "exploration", "fuzzing"),
        *("subject", "machines", "reference_store", "faults", "overview"),
    ),
}
"""The floors of a room, from the lowest up: each imports those before it. A module in no folder is its own floor."""


def upward(room: str, of: tuple[Module, ...]) -> set[tuple[str, str]]:
    """The arrows that point from a floor to one above it."""
    order = FLOORS[room]
    return {(one, two) for one, two in between_floors(of) if order.index(one) < order.index(two)}


def test_no_modules_import_one_another() -> None:
    found = circles(product())
    new = [" ↔ ".join(circle) for circle in found if circle not in debts.CIRCLES]
    assert not new, listed([f"{circle}: give what they share a module below them" for circle in new])
    assert found == debts.CIRCLES, "strike out of `debts.CIRCLES` what is no circle any more"


@pytest.mark.parametrize("room", FLOORS)
def test_every_floor_has_its_place_in_the_order(room: str) -> None:
    floors = {module.floor for module in modules(room)} - {"__init__"}
    assert floors <= set(FLOORS[room]), "say in `FLOORS` between which floors it lies"


@pytest.mark.parametrize("room", FLOORS)
def test_no_floor_imports_one_above_it(room: str) -> None:
    found, owed = upward(room, modules(room)), debts.UPWARD.get(room, set())
    new = [f"{room}/: {one} imports {two}, which lies above it" for one, two in sorted(found - owed)]
    assert not new, listed([f"{complaint}: move down what it needs, or up what needs it" for complaint in new])
    assert not owed - found, f"strike out of `debts.UPWARD`: {sorted(owed - found)}"


def test_a_circle_is_caught_though_it_is_for_types_alone() -> None:
    late = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from gapless.traces.events import one\n"
    one = module("traces/events/one.py", "from gapless.traces.events.two import Two")
    assert circles([one, module("traces/events/two.py", late)]) == [
        ["gapless.traces.events.one", "gapless.traces.events.two"]
    ]
    assert circles([one, module("traces/events/two.py", "import gapless.spec.one")]) == []


def test_an_arrow_that_points_upward_is_caught() -> None:
    low, high = module("traces/events/low.py", "import gapless.traces.check"), module("traces/check.py", "")
    assert upward("traces", (low, high)) == {("events", "check")}
    low, high = module("traces/events/low.py", ""), module("traces/check.py", "from gapless.traces.events import low")
    assert upward("traces", (low, high)) == set()
