"""The plain install: commands that judge recordings need no prover; others name the package that is missing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gapless.extras import OF_SPECS
from tests.support.rocketmq.recordings import recording

ROOT = Path(__file__).parents[2]
LEASE = ROOT / "examples/lease.py"
PLAIN = f"""
import sys
sys.modules.update(dict.fromkeys({sorted(OF_SPECS)}))  # as where they are not installed
from gapless.entry import main
main()
"""


def plain(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command where the extra is not installed."""
    command = [sys.executable, "-c", PLAIN, *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=cwd)


@pytest.mark.parametrize(
    ("arguments", "package"),
    [(["prove", LEASE], "z3"), (["audit", LEASE], "z3"), (["explore", LEASE], "scipy")],
)
def test_a_missing_package_is_one_sentence_with_its_remedy(
    arguments: list[str | Path], package: str, tmp_path: Path
) -> None:
    ended = plain(*arguments, cwd=tmp_path)
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"gapless: {package} is not installed;")
    assert line.endswith("pip install 'gapless[spec]'")


COMMANDS = f"""
import json, sys
sys.modules.update(dict.fromkeys({sorted(OF_SPECS)}))
from typer.testing import CliRunner
from gapless.cli import app
for code, *arguments in json.loads(sys.argv[1]):
    ended = CliRunner().invoke(app, arguments)
    assert ended.exit_code == code, (arguments, ended.output)
"""


def test_recordings_are_judged_without_the_extra(tmp_path: Path) -> None:
    """In one process: what is hidden stays so."""
    store, events, lease = str(recording("normal")), str(ROOT / "examples/lease.ndjson"), str(LEASE)
    asked = (
        (0, "check", store, "--report", "page.html", "--json", "report.json"),
        (1, "check", events, "--spec", lease),
        (0, "watch", store, "--once", "--state", "state"),
        (0, "explain", store, "--trace", "commitlog"),
        (0, "trace", store, "--out", "events.ndjson"),
        (0, "rules"),
        (0, "steps", lease),
        (0, "schema", "events"),
        (0, "record", "trial", "--messages", "10"),
    )
    command = [sys.executable, "-c", COMMANDS, json.dumps(asked)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
