"""The modules of the product: short enough to be read at once, and each class by a name that no other has."""

import ast
from collections import defaultdict
from collections.abc import Iterable

from tests.house import debts
from tests.house.project import Module, listed, product
from tests.house.samples import module

LINES = 500
MIRRORED = {"impl", "spec"}
"""A spec and its implementation may call the same thing by the same name. In each spec, `State` is its state."""


def long(of: Iterable[Module]) -> set[str]:
    return {str(module.path) for module in of if module.source.count("\n") > LINES}


def named_twice(of: Iterable[Module]) -> dict[str, list[str]]:
    """The classes that share their name with another one, and where they are."""
    places: dict[str, list[Module]] = defaultdict(list)
    for found in of:
        for node in found.tree.body:
            if isinstance(node, ast.ClassDef) and not (found.room == "spec" and node.name == "State"):
                places[node.name].append(found)
    return {
        name: [str(found.path) for found in there]
        for name, there in places.items()
        if len(there) > (2 if {found.room for found in there} == MIRRORED else 1)
    }


def test_no_module_is_longer_than_a_reader_wants() -> None:
    found = long(product())
    assert not found - debts.LONG, listed([f"{path}: over {LINES} lines: split it by purpose" for path in found])
    assert not debts.LONG - found, f"strike out of `debts.LONG`: {sorted(debts.LONG - found)}"


def test_one_class_name_means_one_thing() -> None:
    found = named_twice(product())
    new = [f"class {name}: {', '.join(found[name])}: say which is which" for name in sorted(found.keys() - debts.TWICE)]
    assert not new, listed(new)
    assert not debts.TWICE - found.keys(), f"strike out of `debts.TWICE`: {sorted(debts.TWICE - found.keys())}"


def test_a_long_module_is_caught() -> None:
    assert long([module("impl/a.py", "\n" * 501), module("impl/b.py", "\n" * 500)]) == {"impl/a.py"}


def test_a_class_name_that_is_taken_is_caught() -> None:
    world = "class World:\n    pass\n"
    impl, spec, traces = (module(f"{room}/worlds.py", world) for room in ("impl", "spec", "traces"))
    assert named_twice([impl, traces]) == {"World": ["impl/worlds.py", "traces/worlds.py"]}
    assert named_twice([impl, impl, spec]) == {"World": ["impl/worlds.py", "impl/worlds.py", "spec/worlds.py"]}
    assert named_twice([impl, spec]) == named_twice([traces]) == {}
