"""The pages of the repository, laid out for a site: every link leads to a page of it, or to the source as a page."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from posixpath import dirname, join, normpath, relpath
from shutil import which

from manual.markdown import ELSEWHERE, LINK, without_code

ROOT = Path(__file__).parents[1]
HOME = "docs/README.md"
"""The page at which the site begins; it is `index` there."""

LANGUAGES = {".py": "python", ".go": "go", ".java": "java", ".yml": "yaml", ".json": "json", ".toml": "toml"}
IN_A_HEADING = re.compile(r'^(#+ +)((?:<a id="[^"]+"></a> *)+)', re.MULTILINE)


class NoRepository(Exception):  # noqa: N818 - it names what is missing
    """Without git the pages of the project are unknown."""


def project_files() -> list[str]:
    """The files that are in the repository or about to be, by path. Raises NoRepository."""
    git = which("git")
    if git is None or not (ROOT / ".git").exists():
        raise NoRepository("git says which files belong to the project: install it, and work in a clone")
    listing = [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")  # noqa: S603
    return [name for name in names if name and (ROOT / name).is_file()]


@dataclass
class SitePages:
    """Pages that are being laid out in a folder. `files`: what there is to link to, by path."""

    folder: Path
    files: frozenset[str]
    shown: set[str] = field(default_factory=set)
    """What is not a page by itself, and was laid out since a page links to it."""

    def place(self, name: str) -> str:
        """The place of a page of the repository in the site."""
        return "index.md" if name == HOME else name

    def rewritten(self, text: str, name: str) -> str:
        """A page with its links as the site has them.

        Anchors in headings stand before these, for a table of contents would repeat them.
        """
        blank, parts, end = without_code(text), [], 0
        for match in LINK.finditer(blank):
            group = 1 if match[1] else 2
            if not ELSEWHERE.match(match[group]):
                parts += [text[end : match.start(group)], self._target(match[group], name)]
                end = match.end(group)
        return IN_A_HEADING.sub(r"\2\n\n\1", "".join([*parts, text[end:]]))

    def _target(self, target: str, name: str) -> str:
        """The target of a link of a page, as the site has it."""
        path, _, anchor = target.partition("#")
        to = normpath(join(dirname(name), path)) if path else name
        return relpath(self._opened(to), dirname(self.place(name)) or ".") + (f"#{anchor}" if anchor else "")

    def _opened(self, name: str) -> str:
        """The page for a file or a folder of the repository; what is no text is copied. A dead link stays one."""
        if name.endswith(".md"):
            return self.place(name)
        within = sorted(file for file in self.files if file.startswith(f"{name}/"))
        if f"{name}/README.md" in self.files:
            return self.place(f"{name}/README.md")
        if not within and name not in self.files:
            return name
        page = f"{name}/index.md" if within else f"{name}.md"
        data = b"" if within else (ROOT / name).read_bytes()
        if b"\0" in data or PurePosixPath(name).suffix in {".svg", ".png"}:
            page = name
        if name not in self.shown:
            self.shown.add(name)
            if within:
                self.write(page, self._listing(name, within))
            elif page == name:
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, self.folder / name)
            else:
                self.write(page, _source(name, data.decode()))
        return page

    def _listing(self, name: str, within: list[str]) -> str:
        """A page of a folder."""
        lines = [f"- [{file.removeprefix(f'{name}/')}]({relpath(self._opened(file), name)})" for file in within]
        return "\n".join(["---", "orphan: true", "---", f"# `{name}/`", "", *lines, ""])

    def write(self, name: str, text: str) -> None:
        """A page of the site."""
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text, encoding="utf-8")


def _source(name: str, text: str) -> str:
    """A page of a source file."""
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`{3,}", text))])
    language = LANGUAGES.get(PurePosixPath(name).suffix, "text")
    return f"---\norphan: true\n---\n# `{name}`\n\n{fence}{language}\n{text.rstrip()}\n{fence}\n"


def stage(folder: Path, more: Mapping[str, str], contents: str) -> None:
    """Lay all pages out in a folder, which is emptied first.

    They are those of the repository, `more` by their names, and what they link to. The first page ends with the table
    of contents.
    """
    shutil.rmtree(folder, ignore_errors=True)
    staging = SitePages(folder, frozenset(project_files()))
    pages = {name: (ROOT / name).read_text(encoding="utf-8") for name in staging.files if name.endswith(".md")}
    for name, text in sorted({**pages, **more}.items()):
        staging.write(staging.place(name), staging.rewritten(text, name) + (contents if name == HOME else ""))
