"""Reports of many kinds are opened in Chromium: nothing may run over, nothing may be hard to read.

    python -m tests.look [--build build]

It leaves screenshots in build/look: each page at three widths, light and dark, and as it is printed. Exit codes: 0 all
is well, or skipped for want of Chromium; 1 not.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from tests.look.pages import PAGES

if TYPE_CHECKING:  # Playwright is no part of what tests need
    from tests.look.browser import Looker

CONSOLE = Console(highlight=False, soft_wrap=True)
WIDTHS = (500, 900, 1400)
SCHEMES = ("light", "dark")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ALL_WRONG = """<!DOCTYPE html><title>x</title><body><p style="color:#eee;background:#fff">pale</p>
<p style="width:2000px">wide</p><p style="font-size:4px">tiny</p><img src="missing.png">
<svg width="100" height="20"><text x="90" y="10">over the edge</text><text y="9">one</text><text y="9">two</text></svg>
<script>console.error("broken")</script>"""
SEEN = (
    *("the console says: broken", "asks for", "wider than the page", "runs over the page", "runs over its picture"),
    *("stands on", "4.0 px: tiny", "color-contrast", "html-has-lang", "image-alt"),
)
NEEDED = ("playwright", "axe_playwright_python")


def main() -> int:
    """Every page in turn; a line for each."""
    parser = argparse.ArgumentParser(prog="python -m tests.look", description="Are reports fit to be looked at?")
    parser.add_argument("--build", type=Path, default=Path("build"), help="where pages and screenshots are kept")
    parser.add_argument("--only", metavar="PAGE", help=f"one of: {', '.join(PAGES)}")
    chosen = parser.parse_args()
    pages = {name: make for name, make in PAGES.items() if chosen.only in (None, name)}
    if not pages:
        parser.error(f"there is no page {chosen.only!r}")
    if missing := "".join(_missing()):
        CONSOLE.print(f"skipped: {missing}", markup=False)
        return 0
    room = chosen.build / "look"
    shutil.rmtree(room, ignore_errors=True)
    room.mkdir(parents=True)
    wrong = [line for line in _looked_at(room, pages) if line]
    CONSOLE.print(f"{len(wrong)} things are wrong" if wrong else f"all is well; the screenshots are in {room}")
    return int(bool(wrong))


def _missing() -> Iterator[str]:
    if not _browser():
        yield "there is no Chromium. On Debian: apt install chromium"
    elif lacking := [name for name in NEEDED if find_spec(name) is None]:
        yield f"{' and '.join(lacking)} missing: pip install '.[look]'"


def _browser() -> str | None:
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def _looked_at(room: Path, pages: dict[str, Callable[[], str]]) -> Iterator[str]:
    """Yield the defects of each page, a line each; an empty line for a good page."""
    from tests.look.browser import Looker  # noqa: PLC0415 - see above

    browser = _browser()
    assert browser is not None, "`_missing` has asked"
    with Looker(browser, room) as looker:
        yield from _blind(looker, room)
        for name, make in pages.items():
            path = room / f"{name}.html"
            path.write_text(make(), encoding="utf-8")
            found = [*looker.whatever_is_wrong(path, WIDTHS, SCHEMES)]
            CONSOLE.print(f"{'✗' if found else '✓'} {name}, {path.stat().st_size / 1000:,.0f} kB")
            for line in found:
                CONSOLE.print(f"    {line}", markup=False)
                yield line


def _blind(looker: Looker, room: Path) -> Iterator[str]:
    """Yield the defects that are not found on a page with all defects."""
    path = room / "all-wrong.html"
    path.write_text(ALL_WRONG, encoding="utf-8")
    seen = "\n".join(looker.whatever_is_wrong(path, WIDTHS[:1], SCHEMES[:1]))
    for what in SEEN:
        if what not in seen:
            CONSOLE.print(f"✗ not noticed: a page {what}")
            yield what


if __name__ == "__main__":
    sys.exit(main())
