"""The page of states that `gapless explore --graph` draws, in a browser where one is at hand."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.command_line import ROOT, gapless

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
LOOKED_FOR = """<script>
window.addEventListener("error", problem => { document.title = problem.message; });
const input = document.querySelector(".filter input"), shown = [];
for (const words of WORDS) {
  input.value = words;
  input.dispatchEvent(new Event("input"));
  shown.push([document.querySelector("output").textContent, document.querySelectorAll(".state.near").length]);
}
document.title = JSON.stringify(shown);
</script></body>"""


FITTED = """<script>
window.addEventListener("error", problem => { document.title = problem.message; });
const [svg, frame, fit] = ["svg", ".frame", ".fit"].map(one => document.querySelector(one));
const shown = [], note = () => shown.push(svg.getBoundingClientRect().width / svg.viewBox.baseVal.width);
note(); fit.click(); note(); shown.push(svg.getBoundingClientRect().width <= frame.clientWidth); fit.click(); note();
const sizes = [...svg.querySelectorAll("text")].map(one => parseFloat(getComputedStyle(one).fontSize));
document.title = JSON.stringify([...shown.map(one => Number(Number(one).toFixed(2))), Math.min(...sizes), fit.hidden]);
</script></body>"""


def in_browser(page: Path) -> str:
    """The title that a page gives itself."""
    shown = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", page.as_uri()],
        check=True, capture_output=True, text=True, timeout=120,
    ).stdout  # fmt: skip
    title = re.search("<title>(.*?)</title>", shown)
    assert title
    return title[1]


@pytest.mark.skipif(not CHROMIUM, reason="no Chromium")
def test_a_large_drawing_begins_at_a_readable_size_and_fits_on_demand(tmp_path: Path) -> None:
    page = tmp_path / "states.html"
    assert gapless("explore", ROOT / "examples/lease.py", "--graph", page).exit_code == 0
    page.write_text(page.read_text().replace("</body>", FITTED))
    begins, fits, inside, again, smallest, hidden = json.loads(in_browser(page))
    assert (begins, again, inside, hidden) == (1, 1, 1, False)
    assert fits < 0.5
    assert smallest >= 11


def test_the_result_and_the_bound_stand_outside_of_the_drawing(tmp_path: Path) -> None:
    page = tmp_path / "states.html"
    assert gapless("explore", "dispatch", "--graph", page).exit_code == 0
    before, _, drawn = page.read_text().partition("<svg")
    for word in ("<h2>dispatch</h2>", "all hold", "Bound: "):
        assert word in before
        assert word not in drawn


@pytest.mark.skipif(not CHROMIUM, reason="no Chromium")
def test_what_is_looked_for_stands_out(tmp_path: Path) -> None:
    page = tmp_path / "states.html"
    assert gapless("explore", "dispatch", "--graph", page).exit_code == 0
    text = page.read_text()
    states = [re.sub("<[^>]*>", " ", state) for state in re.findall(r'<g class="state .*?</g>', text, re.DOTALL)]
    having = sum("flushed" in state and "taken" in state for state in states)
    assert 0 < having < len(states)
    words = '["flushed taken", "no such thing", "SCAN(number=1)", ""]'
    page.write_text(text.replace("</body>", LOOKED_FOR.replace("WORDS", words)))
    assert in_browser(page) == (
        f'[["{having} of {len(states)} states, 0 steps",{having}],["0 of {len(states)} states, 0 steps",0],'
        f'["0 of {len(states)} states, 1 steps",2],["",0]]'
    )
