"""A new spec is its file, its bound and its tests: in a copy of the rooms with one spec more, all readers find it."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.support.command_line import ROOT
from tests.support.toy_spec import FENCE, TOY

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
FENCED = """\
{"schema":"gapless-events","version":1}
{"source":"x","spec":"fence","trace":"a","position":0,"action":"begin","args":{"epoch":1}}
{"source":"x","spec":"fence","trace":"a","position":1,"action":"work","args":{"number":0,"epoch":1,"kind":2}}
{"source":"x","spec":"fence","trace":"a","position":2,"action":"finish","args":{"to":2,"kind":2}}
{"source":"x","spec":"fence","trace":"b","position":0,"action":"begin","args":{"epoch":1}}
{"source":"x","spec":"fence","trace":"b","position":1,"action":"begin","args":{"epoch":2}}
{"source":"x","spec":"fence","trace":"b","position":2,"action":"work","args":{"number":0,"epoch":1,"kind":2}}
"""


COMMANDS = """
import json
from typer.testing import CliRunner
from gapless.cli import app

commands = ("explore", "toy"), ("prove", "toy"), ("rules",), ("check", "toy.ndjson"), ("check", "fence.ndjson")
ran = {" ".join(args): CliRunner().invoke(app, args) for args in commands}
print(json.dumps({name: (result.exit_code, result.output) for name, result in ran.items()}))
"""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """Exit codes and outputs in a copy of the rooms with a spec and its bound; nothing else is changed there."""
    house = tmp_path_factory.mktemp("house")
    for room in ("gapless", "impl", "native", "properties", "spec", "traces"):
        shutil.copytree(ROOT / room, house / room, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    (house / "spec/toy.py").write_text(TOY, encoding="utf-8")
    (house / "properties/exploration/bounds/toy.py").write_text(BOUND, encoding="utf-8")
    (house / "toy.ndjson").write_text(EVENTS, encoding="utf-8")
    (house / "spec/fence.py").write_text(FENCE, encoding="utf-8")
    (house / "fence.ndjson").write_text(FENCED, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-c", COMMANDS],
        cwd=house,
        env={**os.environ, "PYTHONPATH": str(house)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    found: dict[str, tuple[int, str]] = json.loads(ran.stdout)
    return found


@pytest.mark.xdist_group("new spec")  # one process runs its commands
@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        ("explore toy", 0, "up to three"),
        ("prove toy", 0, "toy: add: the_kernel_is_the_spec"),
        ("rules", 0, "toy/there-is-not-too-much\n  need of add: there is not too much"),
        ("check toy.ndjson", 1, 'line 3: add breaks the rule "there is not too much"'),
        ("check fence.ndjson", 1, "     Here: bits[1] = 0, to = 2, done = 0.\n"),
        ("check fence.ndjson", 1, "     Here: epoch: the step says 1, the state has 2.\n"),
    ],
)
def test_a_reader_finds_it(command: str, code: int, says: str, outputs: dict[str, tuple[int, str]]) -> None:
    found, output = outputs[command]
    assert found == code, output
    assert says in output
