"""The refusal of workers that lack something, the same for all of Spark's engines."""

import re
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from gapless import EngineFailure


def are_named(engine: Any, known: Path, folder: Path) -> None:
    """Check the sentences on workers without the package `no_such_package`. `known`: a path that they can read."""
    with pytest.raises(EngineFailure) as failure:
        engine.look([known, folder / "in"], [folder / "out" / "unfinished"])
    lacks = str(failure.value).removeprefix("Spark's workers lack something: ").split("; ")
    host = socket.gethostname()
    assert [re.sub("(is|be|install) .*", r"\1", lack) for lack in lacks] == [
        f"{host}: {sys.executable} has no no_such_package: install",
        f"{host}: {folder}/in cannot be",
        f"{host}: {folder}/out is",
    ]
