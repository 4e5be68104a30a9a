"""The looking itself is `make look`; here only that it says what is missing, and knows the pages that it looks at."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.look import __main__ as look
from tests.look.pages import PAGES


def test_without_a_browser_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", ["look", "--build", str(tmp_path)])
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert look.main() == 0
    assert capsys.readouterr().out == "skipped: there is no Chromium. On Debian: apt install chromium\n"


def test_without_what_drives_the_browser_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", ["look", "--build", str(tmp_path)])
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(look, "find_spec", lambda _: None)
    assert look.main() == 0
    expected = "skipped: playwright and axe_playwright_python missing: pip install '.[look]'\n"
    assert capsys.readouterr().out == expected


def test_a_page_that_is_looked_at_has_what_it_is_there_for() -> None:
    page = PAGES["gap"]()
    assert 'class="cell gap"' in page
    assert 'class="cell taken"' in page
