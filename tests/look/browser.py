"""A page in Chromium: what it complains of, what runs over its box, what cannot be read; and how it looks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, ViewportSize, sync_playwright

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]  # of axe-core: contrast, names, landmarks, …
SHOWN = 6  # complaints of one kind
HEIGHT = 900
PAPER: ViewportSize = {"width": 718, "height": 1047}  # A4 at 96 dots an inch, within its margins

# Elements that are wider than the page, or than the box that they stand in; what scrolls in its own box is meant to.
RUNS_OVER = """() => {
  const found = [];
  const note = (e, what) => found.push(`${e.tagName.toLowerCase()}.${e.getAttribute('class') || ''} ${what}: ` +
    `${(e.textContent || '').trim().replace(/\\s+/g, ' ').slice(0, 60)}`);
  const scrolls = e => { for (; e; e = e.parentElement)
    if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(e).overflowX)) return true; return false; };
  const wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > wide) note(document.body, 'is wider than the page');
  for (const e of document.querySelectorAll('body *')) {
    const box = e.getBoundingClientRect();
    if (!box.width || e.closest('.unseen, .skip, defs')) continue;
    if (box.right > wide + 1 && !scrolls(e)) note(e, 'runs over the page');
  }
  for (const text of document.querySelectorAll('svg text')) {
    const svg = text.ownerSVGElement.getBoundingClientRect(), box = text.getBoundingClientRect();
    if (box.left < svg.left - 1 || box.right > svg.right + 1) note(text, 'runs over its picture');
  }
  for (const svg of document.querySelectorAll('svg')) {
    const texts = [...svg.querySelectorAll('text')].map(t => [t, t.getBoundingClientRect()]);
    texts.forEach(([t, a], n) => texts.slice(n + 1).forEach(([u, b]) => {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const tall = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 2 && tall > 4) note(t, `stands on “${u.textContent}”`);
    }));
  }
  return found;
}"""
# Letters that are too small; those of a picture are as small as it is drawn. Pictures of findings are for everyone.
TOO_SMALL = """() => [...document.querySelectorAll('svg text, td, th, li, p, pre, figure small, figure code')]
  .filter(e => e.getBoundingClientRect().width)
  .map(e => [e, e.ownerSVGElement
    ? parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a : parseFloat(getComputedStyle(e).fontSize)])
  .filter(([e, size]) => size < (e.closest('.finding figure') ? 11.9 : 7.5))
  .map(([e, size]) => `${size.toFixed(1)} px: ${e.textContent.trim().slice(0, 40)}`)"""


class Looker:
    """A browser without a network, and a folder for what it sees."""

    def __init__(self, browser: str, room: Path) -> None:
        self.room = room
        self.binary = browser
        self.playwright = sync_playwright()

    def __enter__(self) -> Self:
        started = self.playwright.start()
        self.browser = started.chromium.launch(executable_path=self.binary, args=["--no-sandbox"])
        self.stop = started.stop
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.browser.close()
        self.stop()

    def whatever_is_wrong(self, path: Path, widths: Sequence[int], schemes: Sequence[str]) -> Iterator[str]:
        """Look at a page at every width in every scheme, and tell what is wrong. Screenshots are left in the folder."""
        for scheme in schemes:
            for width in widths:
                for line in self._look(path, width, "dark" if scheme == "dark" else "light", whole=width == widths[0]):
                    yield f"{width} px, {scheme}: {line}"
        yield from (f"printed: {line}" for line in self._printed(path))

    def _printed(self, path: Path) -> list[str]:
        """Check the page in print, from a dark screen and without scripts: overflow cannot be scrolled there."""
        context = self.browser.new_context(viewport=PAPER, color_scheme="dark", offline=True)
        page = context.new_page()
        page.goto(path.resolve().as_uri())
        page.emulate_media(media="print")
        page.screenshot(path=self.room / f"{path.stem}-printed.png", full_page=True)
        found = self._few(page.evaluate(RUNS_OVER))
        context.close()
        return found

    def _look(self, path: Path, width: int, scheme: Literal["dark", "light"], *, whole: bool) -> list[str]:
        """One look; a `whole` one asks axe-core, too: what it asks for is the same at every width."""
        context = self.browser.new_context(
            viewport={"width": width, "height": HEIGHT}, color_scheme=scheme, offline=True, java_script_enabled=True
        )
        found: list[str] = []
        uri = path.resolve().as_uri()
        page = context.new_page()
        page.on("console", lambda message: found.append(f"the console says: {message.text}"))
        page.on("pageerror", lambda error: found.append(f"the page fails: {error}"))
        page.on("request", lambda request: found.extend(f"asks for {url}" for url in [request.url] if url != uri))
        page.goto(uri)
        page.evaluate("() => document.querySelectorAll('details').forEach(e => e.open = true)")
        page.screenshot(path=self.room / f"{path.stem}-{width}-{scheme}.png", full_page=True)
        found += self._few(page.evaluate(RUNS_OVER)) + self._few(page.evaluate(TOO_SMALL))
        found += self._unfit(page) if whole else []
        context.close()
        return found

    def _few(self, lines: list[str]) -> list[str]:
        more = [f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
        return lines[:SHOWN] + more

    def _unfit(self, page: Page) -> list[str]:
        """Return complaints of axe-core: contrast, missing names, landmarks, tables without heads."""
        found: Any = Axe().run(page, options={"runOnly": RULES}).response
        return [
            f"{one['id']}: {one['help']}, {len(one['nodes'])} places: {node['html'][:70]}; {_summary(node)}"
            for one in found["violations"]
            for node in one["nodes"][:1]
        ]


def _summary(node: Any) -> str:
    """Format axe-core's complaint about one place."""
    return " ".join(str(node["failureSummary"]).split())[:120]
