"""Pages as the site has them: every link leads to a page of it; with Sphinx at hand, one that leads nowhere fails."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from gapless.cli import app
from gapless.commands.examples import EXIT_CODES, MORE, OVERVIEW
from gapless.spec.catalog import SPECS
from gapless.traces.rules import rules
from manual import commands, reference
from manual.__main__ import NEEDED
from manual.navigation import CONTENTS, toctrees
from manual.staging import HOME, ROOT, NoRepository, SitePages, project_files, stage

needs_sphinx = pytest.mark.skipif(
    any(find_spec(name) is None for name in NEEDED), reason="the site wants pip install 'gapless[docs]'"
)
FILES = frozenset({"README.md", "docs/README.md", "docs/ci.md", "spec/README.md", "spec/log.py", "spec/decisions/1.md"})


def rewritten(text: str, name: str, folder: Path) -> str:
    """A page of a small project as the site has it."""
    return SitePages(folder, FILES).rewritten(text, name)


@pytest.mark.parametrize(
    ("name", "link", "there"),
    [
        ("docs/ci.md", "[a](../README.md#how)", "[a](../README.md#how)"),
        ("docs/ci.md", "[home](README.md)", "[home](../index.md)"),
        ("README.md", "[home](docs/README.md#codes)", "[home](index.md#codes)"),
        ("docs/README.md", "[ci](ci.md)", "[ci](docs/ci.md)"),
        ("docs/ci.md", "[here](#exit)", "[here](ci.md#exit)"),
        ("docs/ci.md", "[log](../spec/log.py)", "[log](../spec/log.py.md)"),
        ("docs/ci.md", "[spec](../spec)", "[spec](../spec/README.md)"),
        ("docs/ci.md", "[decisions](../spec/decisions)", "[decisions](../spec/decisions/index.md)"),
        ("docs/ci.md", "`[a](b.md)` and https://x.y/[z](http://z)", "`[a](b.md)` and https://x.y/[z](http://z)"),
        ("docs/ci.md", "[gone](gone.md)", "[gone](gone.md)"),
        ("docs/ci.md", '## <a id="x"></a>Title', '<a id="x"></a>\n\n## Title'),
    ],
)
def test_links_lead_to_pages(name: str, link: str, there: str, tmp_path: Path) -> None:
    assert rewritten(link, name, tmp_path) == there


def test_a_source_is_a_page(tmp_path: Path) -> None:
    rewritten("[log](log.py) in [decisions](decisions)", "spec/README.md", tmp_path)
    assert "```python\n" in (tmp_path / "spec/log.py.md").read_text()
    assert "[1.md](1.md)" in (tmp_path / "spec/decisions/index.md").read_text()


def test_every_page_is_in_the_table_of_contents() -> None:
    """Sphinx says the same, where it is at hand."""
    if not (pages := {name.removesuffix(".md") for name in _files() if name.endswith(".md")}):
        pytest.skip("no git, or not in a repository")
    listed = {page for part in CONTENTS.values() for page in part}
    folders = {f"{page.rpartition('/')[0]}/" for page in listed if page.endswith("*")}
    rules_of_specs = {f"{reference.FOLDER}/rules/{spec}.md" for spec in SPECS}  # which the page of rules lists
    made = {page.removesuffix(".md") for page in reference.pages().keys() - rules_of_specs}
    made |= {"reference/commands/gapless"}
    found = {page for page in pages if f"{page.rpartition('/')[0]}/" not in folders} - {"docs/README"}
    assert found | made == {page for page in listed if not page.endswith("*")}


def _files() -> list[str]:
    try:
        return project_files()
    except NoRepository:
        return []


def test_the_reference_has_every_rule_and_step() -> None:
    pages = reference.pages()
    assert all(f'<a id="{rule.id}"></a>' in pages[f"{reference.FOLDER}/rules/{rule.spec}.md"] for rule in rules())
    steps = [f"### `{action}(" for spec in SPECS.values() for action in spec.actions]
    assert len(steps) > 50
    assert all(step in pages[f"{reference.FOLDER}/steps.md"] for step in steps)
    assert '"$defs"' in pages[f"{reference.FOLDER}/schema-events.md"]


def test_every_command_has_a_page_with_examples_and_exit_codes() -> None:
    pages = {page.name: page.text for page in commands.command_pages()}
    names = {command.callback.__name__ for command in app.registered_commands if command.callback is not None}
    assert pages.keys() == {"gapless", "gapless-serve", "gapless-serve-coordinator", *(f"gapless-{n}" for n in names)}
    assert {f"gapless-{command.replace(' ', '-')}" for command in EXIT_CODES} == pages.keys() - {
        "gapless",
        "gapless-serve",
    }
    assert "`--baseline FILE`\n: A file of findings" in pages["gapless-check"]
    assert all(f"`{example}`\n" in pages["gapless"] for example, _ in OVERVIEW)


@pytest.mark.parametrize("example", [one for one, _ in (*OVERVIEW, *(one for many in MORE.values() for one in many))])
def test_an_example_names_options_that_are_there(example: str) -> None:
    assert len(example) <= 67, "man and help break longer ones at 80 columns"
    words = example.split()
    name = "-".join(words[:3]) if words[1] == "serve" else "-".join(words[:2])
    page = {page.name: page.text for page in commands.command_pages()}[name]
    for option in (word for word in words if word.startswith("--")):
        assert f"`{option}`" in page or f"`{option} " in page, f"{example}: {option}"
    if "--ignore" in words:
        assert words[words.index("--ignore") + 1] in {rule.id for rule in rules()}


# -- with Sphinx -----------------------------------------------------------------------------------------------------


def sphinx(pages: Path, out: Path, builder: str = "html") -> subprocess.CompletedProcess[str]:
    """Sphinx with our settings."""
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-b",
        builder,
        "-W",
        "-q",
        "-c",
        str(ROOT / "manual"),
        str(pages),
        str(out),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


@needs_sphinx
@pytest.mark.slow
def test_the_site_and_the_man_pages_are_built(tmp_path: Path) -> None:
    if not _files():
        pytest.skip("no git, or not in a repository")
    stage(tmp_path / "pages", {**reference.pages(), **dict(commands.pages())}, toctrees())
    done = sphinx(tmp_path / "pages", tmp_path / "site")
    assert (done.returncode, done.stderr) == (0, "")
    for page in (tmp_path / "site").rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not _loaded_from_elsewhere(text), page
    assert (tmp_path / "site/spec/dispatch.py.html").is_file()
    done = sphinx(tmp_path / "pages", tmp_path / "man", "man")
    assert (done.returncode, done.stderr) == (0, "")
    assert len([*(tmp_path / "man").glob("gapless*.1")]) == 14


def _loaded_from_elsewhere(page: str) -> list[str]:
    """Scripts, styles, fonts and pictures that a browser would ask a network for."""
    return [
        tag
        for tag in page.split("<")
        if tag.startswith(("script", "link ", "img", "iframe"))
        and ('src="http' in tag or 'stylesheet" href="http' in tag)
    ]


@needs_sphinx
@pytest.mark.slow
@pytest.mark.parametrize("link", ["[gone](gone.md)", "[gone](#gone)", f"[gone]({HOME}#gone)", "[code](gone.py)"])
def test_a_link_that_leads_nowhere_fails(link: str, tmp_path: Path) -> None:
    for text, code in ((f"# Home\n\n{link}\n", 1), ('# Home\n\n<a id="here"></a> [there](#here)\n', 0)):
        folder = tmp_path / str(code)
        folder.mkdir()
        (folder / "index.md").write_text(
            SitePages(folder, frozenset({"docs/README.md"})).rewritten(text, "docs/README.md")
        )
        assert sphinx(folder, tmp_path / f"site{code}").returncode == code
