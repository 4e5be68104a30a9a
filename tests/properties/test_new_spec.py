"""A new spec is its file, its bound and its tests: in a copy of the rooms with one spec more, all readers find it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import ROOT
from tests.support.toy_spec import TOY

BOUND = '''"""How far a counter is explored."""

from gapless.properties.exploration.bounds import FLAG, Bound

BOUND = Bound(
    says="up to three",
    within=lambda s: s.count <= 3,
    numbers={"more": (0, 1, 100), "honest": FLAG},
)
'''

EVENTS = """\
{"schema":"gapless-events","version":1}
{"source":"x","spec":"toy","trace":"a","position":0,"action":"add","args":{"more":1,"honest":1}}
{"source":"x","spec":"toy","trace":"a","position":1,"action":"add","args":{"more":100,"honest":1}}
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rooms, with a spec and its bound besides; nothing else is changed."""
    copy = tmp_path_factory.mktemp("house")
    for room in ("gapless", "impl", "properties", "spec", "traces"):
        shutil.copytree(ROOT / room, copy / room, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "spec/toy.py").write_text(TOY, encoding="utf-8")
    (copy / "properties/exploration/bounds/toy.py").write_text(BOUND, encoding="utf-8")
    return copy


def printed(house: Path, *arguments: str, code: int = 0) -> str:
    """What `gapless` prints there."""
    ran = subprocess.run(
        [sys.executable, "-m", "gapless", *arguments],
        cwd=house,
        env={**os.environ, "PYTHONPATH": str(house)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran.stdout


def test_it_is_explored(house: Path) -> None:
    assert "up to three" in printed(house, "explore", "toy")


def test_it_is_proved(house: Path) -> None:
    assert "obligations proved" in printed(house, "prove", "toy")


def test_its_rules_are_listed(house: Path) -> None:
    assert "need of add: there is not too much" in printed(house, "rules")


def test_its_events_are_judged(house: Path) -> None:
    (house / "toy.ndjson").write_text(EVENTS, encoding="utf-8")
    told = printed(house, "check", "toy.ndjson", code=1)
    assert "add at line 3, not so: there is not too much" in told
