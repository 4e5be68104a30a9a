"""The command line, in this process or in one of its own."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from typer.testing import CliRunner, Result

from gapless.cli import app

ROOT = Path(__file__).parents[2]


def gapless(*arguments: object) -> Result:
    """The command in this process: one of its own would take seconds to start. What it does not catch is raised."""
    return CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)


def gapless_process(
    *arguments: object, within: Sequence[str] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, `within` another command, with changes to its environment."""
    command = [*within, sys.executable, "-m", "gapless", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}, timeout=300, cwd=ROOT
    )
