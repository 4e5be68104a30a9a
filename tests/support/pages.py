"""Pages that are followed: their fenced blocks, the commands in these, and whether what is printed is what is shown.

A block of `sh` holds commands, one to a line. In any other, a line that begins with `$ ` is a command, and behind it
stands what it prints; `…` stands for anything, and alone on a line for any lines. `; echo $?` behind a command shows
its exit code; without it, the command must succeed. A comment `<!-- not run: REASON -->` before a block says that it is
not run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

LEFT_OUT = "…"
NOT_RUN = re.compile(r"<!-- not run: (.+?) -->", re.DOTALL)
COMMAND = re.compile(r"^\$ (.*)\n", re.MULTILINE)
VARIES = (
    (r", with [\d,.]+ s of processor time for compiling native code, once", ""),  # on a machine that has not
    (r"[\d,.]+ ?(ms|s)\b", r"N \1"),  # how long it took
    (r"\b[0-9a-f]{16}\b", "DIGEST"),
    (r"Z3 [\d.]+", "Z3"),
    (r"\b\d+\.\d\b", "N"),  # seconds, in a table
    (r" +", " "),  # the width of columns
    (r" $", ""),
)


@dataclass(frozen=True)
class Block:
    """A fenced block. `info`: what stands behind the fence · `not_run`: why it is not run, if so."""

    info: str
    content: str
    not_run: str | None = None

    def commands(self) -> list[tuple[str, str | None]]:
        """Return each command with its output on the page; None if the page shows none."""
        if self.info == "sh":
            return [(line, None) for line in self.content.splitlines()]
        parts = COMMAND.split(self.content)
        return list(zip(parts[1::2], parts[2::2], strict=True))


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page."""
    return list(blocks_of(page.read_text(encoding="utf-8")))


def blocks_of(text: str) -> Iterator[Block]:
    """The fenced blocks of a page's text."""
    reason = None
    for token in MarkdownIt().parse(text):
        if token.type == "fence":
            yield Block(token.info, token.content, reason)
        skipped = NOT_RUN.search(token.content) if token.type == "html_block" else None
        reason = skipped[1] if skipped else None


def plain(text: str) -> str:
    """The text without what varies from run to run."""
    for varying, same in VARIES:
        text = re.sub(varying, same, text, flags=re.MULTILINE)
    return text


def wanted(text: str) -> str:
    """A pattern of what is printed."""
    return "(?s)" + "".join(map(_line, plain(text).splitlines()))


def _line(line: str) -> str:
    if line.strip() == LEFT_OUT:
        return r"(?:[^\n]*\n)*"
    return r"[^\n]*".join(map(re.escape, line.split(LEFT_OUT))) + "\n"


def without_progress(output: str) -> str:
    """Remove the progress from an output: it depends on the speed of the machine."""
    return re.sub(r"(?m)^gapless: .*?[\d,]+ of [\d,]+ .*\n", "", output)


def is_as_shown(shown: str, output: str) -> bool:
    """True if a command printed what a page shows."""
    return re.fullmatch(wanted(shown), plain(without_progress(output))) is not None
