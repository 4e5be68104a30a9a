"""docs/spec-language.md: each word of the language has a section with an example, and every example is run."""

import ast
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from gapless.spec import language
from gapless.spec.catalog import Spec
from gapless.spec.language import Refused
from gapless.spec.reading.declarations import OF_CALLS, STATES_TAKEN
from gapless.spec.reading.kinds import MAP_WORDS
from gapless.traces.specs import load
from tests.support.command_line import ROOT
from tests.support.pages import Block, blocks, blocks_of

PAGE = ROOT / "docs/spec-language.md"
WORDS = {*language.__all__, *MAP_WORDS, *STATES_TAKEN, *OF_CALLS, "INITIAL", "int", "bool", "NewType", "IntEnum"}
EXAMPLES = [block for block in blocks(PAGE) if block.info == "python spec"]
PLAIN = [block for block in blocks(PAGE) if block.info == "python plain"]
(STATE,) = (block.content for block in blocks(PAGE) if block.info == "python state")
IMPORTS = f"""from dataclasses import dataclass
from enum import IntEnum
from typing import NewType

from gapless.spec.language import {", ".join(sorted(language.__all__))}

"""


def sections() -> dict[str, str]:
    """The text below each heading, by heading."""
    found: dict[str, str] = {}
    for part in PAGE.read_text(encoding="utf-8").split("\n#")[1:]:
        heading, _, text = part.partition("\n")
        found[heading.strip("# ")] = text
    return found


@pytest.mark.parametrize("word", sorted(WORDS))
def test_each_word_has_a_section_with_an_example(word: str) -> None:
    (text,) = (text for heading, text in sections().items() if f"`{word}`" in heading)
    assert any(block.info in ("python spec", "python plain") for block in blocks_of(text))


def whole(block: Block) -> str:
    """The file of an example: what it leaves out is added, and functions are put into the tuples that fit them."""
    tree = ast.parse(block.content)
    names = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    names |= {ast.unparse(node.targets[0]) for node in tree.body if isinstance(node, ast.Assign)}
    text = block.content if block.content.startswith("from ") else IMPORTS + block.content
    if "State" not in names:
        text = text.replace(IMPORTS, IMPORTS + STATE)
    tuples: dict[str, list[str]] = {"ACTIONS": [], "INVARIANTS": [], "STEP_PROPERTIES": []}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and ast.unparse(node.args).startswith(("s: State", "before: State")):
            step, two = ast.unparse(node.returns or node) == "State", "after: State" in ast.unparse(node.args)
            tuples["ACTIONS" if step else "STEP_PROPERTIES" if two else "INVARIANTS"].append(node.name)
    if not tuples["ACTIONS"]:
        text += '\n\ndef stay(s: State) -> State:\n    """Nothing happens."""\n    return s\n'
        tuples["ACTIONS"].append("stay")
    named = {
        name
        for one in names & {*STATES_TAKEN}
        for name in str(block.content).split(f"{one} = (")[1].split(")")[0].split(", ")
    }
    text += "" if "INITIAL" in names else "\nINITIAL = State()\n"
    for name, members in tuples.items():
        if name not in names and (members or name != "STEP_PROPERTIES"):
            text += (
                f"{name} = ({''.join(f'{one}, ' for one in members if one not in {one.strip(',') for one in named})})\n"
            )
    return text


def taken(spec: Spec) -> Iterator[Any]:
    """The initial state, and those that one step leads to."""
    yield spec.initial
    for name, step in spec.actions.items():
        for numbers in product((0, 1, 3), repeat=len(spec.parameters[name])):
            try:
                yield step(spec.initial, *numbers)
            except Refused:
                continue


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_every_example_is_loaded_and_run(number: int, tmp_path: Path) -> None:
    path = tmp_path / "example.py"
    path.write_text(whole(EXAMPLES[number]), encoding="utf-8")
    spec = load(path)
    states = list(taken(spec))
    for holds in (*spec.invariants(), *spec.at_rest, *spec.enabled()):
        for state in states:
            numbers = [1] * (holds.__code__.co_argcount - 1)
            assert holds(state, *numbers) in (True, False)
    for holds in spec.step_properties():
        assert all(holds(spec.initial, state) for state in states)
    if len(spec.actions) > 1 or spec.initial != states[-1]:
        assert len(states) > 1


@pytest.mark.parametrize("number", range(len(PLAIN)))
def test_every_plain_example_runs(number: int) -> None:
    exec(compile(IMPORTS + PLAIN[number].content, "plain.py", "exec"), {})  # noqa: S102 - our own page


def test_no_example_is_of_another_kind() -> None:
    assert {block.info for block in blocks(PAGE)} == {"python spec", "python plain", "python state"}
    assert len(EXAMPLES) > 30
