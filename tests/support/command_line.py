"""The command line, in this process or in one of its own."""

import os
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner, Result

from gapless.cli import app

ROOT = Path(__file__).parents[2]


def gapless(*arguments: object) -> Result:
    """The command in this process: a process of its own would take most of a second to start."""
    return CliRunner().invoke(app, [*map(str, arguments)])


def gapless_process(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, with changes to its environment."""
    command = [sys.executable, "-m", "gapless", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}, timeout=300, cwd=ROOT
    )
