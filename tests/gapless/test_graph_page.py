"""The page of states that `gapless explore --graph` draws, in a browser where one is at hand."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.command_line import gapless

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
    shown = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", page.as_uri()],
        check=True, capture_output=True, text=True, timeout=120,
    ).stdout  # fmt: skip
    title = re.search("<title>(.*?)</title>", shown)
    assert title
    assert title[1] == (
        f'[["{having} of {len(states)} states, 0 steps",{having}],["0 of {len(states)} states, 0 steps",0],'
        f'["0 of {len(states)} states, 1 steps",2],["",0]]'
    )
