"""`python -m manual`: the site in build/site and the man pages in build/man, or why not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from manual import commands, navigation, reference
from manual.staging import ROOT, NoRepository, stage

BUILD = ROOT / "build"
NEEDED = ("sphinx", "myst_parser", "furo")


def main() -> int:
    """Sphinx' exit code; a warning is an error, so that a link that leads nowhere fails."""
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        print(f"{', '.join(missing)} missing: pip install --editable '.[docs]'", file=sys.stderr)
        return 1
    try:
        stage(BUILD / "pages", {**reference.pages(), **dict(commands.pages())}, navigation.toctrees())
    except NoRepository as error:
        print(f"make docs: {error}", file=sys.stderr)
        return 1
    failed = built("html", BUILD / "site") or built("man", BUILD / "man")
    if not failed:
        print(f"site: {BUILD / 'site/index.html'}\nman pages: {BUILD / 'man'}")
    return failed


def built(builder: str, out: Path) -> int:
    """Let Sphinx write one form of the pages. What it read is kept for the next."""
    shutil.rmtree(out, ignore_errors=True)
    known = ["--doctree-dir", str(BUILD / "doctrees"), "--conf-dir", str(ROOT / "manual")]
    strict = ["--fail-on-warning", "--quiet", "--jobs", "2"]
    command = [sys.executable, "-m", "sphinx", "--builder", builder, *known, *strict, str(BUILD / "pages"), str(out)]
    return subprocess.run(command, cwd=ROOT, check=False).returncode  # noqa: S603


if __name__ == "__main__":
    raise SystemExit(main())
