"""This package as an archive, for workers that do not have it installed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

SHIPPED = (".py", ".j2", "py.typed")


def archive(folder: Path) -> Path:
    """Make the archive in that folder. It has the same name and bytes each time, so that a server accepts it twice."""
    whole = sha256()
    path = folder / "gapless.zip"
    with ZipFile(path, "w", ZIP_DEFLATED) as zipped:
        for file, name in sorted(_files()):
            content = file.read_bytes()
            whole.update(f"{name}\0{len(content)}\0".encode() + content)
            zipped.writestr(ZipInfo(name), content, ZIP_DEFLATED)
    return path.rename(folder / f"gapless-{whole.hexdigest()[:12]}.zip")


def _files() -> Iterator[tuple[Path, str]]:
    """Yield every file of the package and its name in the archive; in a source tree, rooms are links."""
    package = find_spec("gapless")
    root = Path(package.submodule_search_locations[0]) if package and package.submodule_search_locations else Path()
    for folder, folders, names in os.walk(root, followlinks=True):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in names:
            if name.endswith(SHIPPED):
                file = Path(folder, name)
                yield file, f"gapless/{file.relative_to(root).as_posix()}"
