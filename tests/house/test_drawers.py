"""A folder of the product can be known by heart, and stands where file names would share a prefix."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from tests.house import debts
from tests.house.project import Module, listed, product
from tests.house.samples import module

DOZEN = 14
"""The modules that a folder may have. A dozen can be known by heart; two more are allowed, since to put one or two into
a folder of their own hides more than it sorts."""

FLAT = {
    "spec": "one file a system",
    "spec/deviations": "one file a spec",
    "spec/laws": "one file a spec",
    "properties/exploration/bounds": "one file a spec",
    "gapless/commands": "one file a command",
}
"""Folders in which each file is one of a kind, and is known by the name of the kind: they may have any number.

`tests/` is not looked at: it is such a set, a file for each subject.
"""

PREFIXED = 3
"""So many modules with one prefix are a folder that was not made."""


def by_folder(of: Iterable[Module]) -> dict[str, list[str]]:
    """The names of the modules in each folder; its own text, `__init__`, is none."""
    folders: dict[str, list[str]] = defaultdict(list)
    for found in of:
        if found.path.stem != "__init__":
            folders[found.path.parent.as_posix()].append(found.path.stem)
    return folders


def drawers(of: Iterable[Module]) -> dict[str, int]:
    """The folders with too many modules, each with their number."""
    return {folder: len(names) for folder, names in by_folder(of).items() if len(names) > DOZEN and folder not in FLAT}


def prefixes(of: Iterable[Module]) -> dict[str, int]:
    """The prefixes that modules of a folder share, as `traces/spark_`, each with the modules' number."""
    return {
        f"{folder}/{first}_": count
        for folder, names in by_folder(of).items()
        if folder not in FLAT
        for first, count in Counter(name.partition("_")[0] for name in names).items()
        if count >= PREFIXED
    }


def test_no_folder_is_a_drawer() -> None:
    found = drawers(product())
    new = {folder: count for folder, count in found.items() if count > debts.DRAWERS.get(folder, 0)}
    remedy = "give what belongs together a folder with a name of its own"
    assert not new, listed([f"{folder}/: {count} modules, over {DOZEN}: {remedy}" for folder, count in new.items()])
    assert found == debts.DRAWERS, "lower `debts.DRAWERS`, or strike out what is no drawer any more"


def test_a_prefix_that_modules_share_is_a_folder() -> None:
    found = prefixes(product())
    new = {prefix: count for prefix, count in found.items() if count > debts.PREFIXES.get(prefix, 0)}
    assert not new, listed([f"{prefix}…: {count} modules: make the prefix a folder" for prefix, count in new.items()])
    assert found == debts.PREFIXES, "lower `debts.PREFIXES`, or strike out what is there no more"


def test_flat_sets_are_there() -> None:
    assert not set(FLAT) - set(by_folder(product())), "strike out of `FLAT` what is no folder any more"


def test_a_drawer_is_caught() -> None:
    many = [module(f"traces/{letter}.py", "") for letter in "abcdefghijklmn"]
    assert drawers([*many, module("traces/__init__.py", ""), module("traces/o/p.py", "")]) == {}
    assert drawers([*many, module("traces/o.py", "")]) == {"traces": DOZEN + 1}
    assert drawers(module(f"gapless/commands/{number}.py", "") for number in range(20)) == {}


def test_a_prefix_that_three_share_is_caught() -> None:
    two = [module("traces/spark.py", ""), module("traces/spark_tasks.py", ""), module("traces/sparks.py", "")]
    assert prefixes([*two, module("traces/events/spark_rows.py", "")]) == {}
    assert prefixes([*two, module("traces/spark_rows.py", "")]) == {"traces/spark_": 3}
