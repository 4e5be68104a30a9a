"""An archive of an environment with gapless, made by `venv-pack`, for workers that have no packages."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import venv
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from zipfile import ZipFile

from gapless.traces.engines.spark.archive import archive


def packed_environment(room: Path) -> Path:
    """Make the environment in a folder, without a network: its packages are copied from this one."""
    folder = room / "env"
    venv.create(folder)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in needed("gapless") - {"gapless"}:
        _copy(name, site)
    with ZipFile(archive(room)) as ours:
        ours.extractall(site)
    packed = room / "env.tar.gz"
    command = ["-m", "venv_pack", "--quiet", "--compress-level", "1", "--prefix", folder, "--output", packed]
    subprocess.run([sys.executable, *map(str, command)], check=True)
    return packed


def needed(name: str) -> set[str]:
    """A package and all that it needs, by the names of their distributions; extras are left out."""
    found: set[str] = set()
    todo = [name]
    while todo:
        one = todo.pop().lower().replace("_", "-")
        if one in found:
            continue
        try:
            requires = distribution(one).requires or []
        except PackageNotFoundError:  # of another system, or of another Python
            continue
        found.add(one)
        todo += [re.split(r"[^\w.-]", text, maxsplit=1)[0] for text in requires if "extra ==" not in text]
    return found


def _copy(name: str, site: Path) -> None:
    for file in distribution(name).files or []:
        if ".." not in file.parts and "__pycache__" not in file.parts:
            (site / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.locate(), site / file)
