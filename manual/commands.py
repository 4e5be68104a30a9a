"""The command line as pages, from the definitions that `--help` is made of: for the site, and for `man`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import typer

from gapless.cli import app
from gapless.commands.examples import EXIT_CODES, examples
from manual.navigation import toctree

FOLDER = "reference/commands"
OF_A_TYPE = re.compile(r" <(str|list\[str\]|path)>$")
"""The type of an argument in help texts, which adds nothing for readers."""


@dataclass(frozen=True)
class CommandPage:
    """A page of a command. `name`: of the page, and of the man page · `says`: in one line."""

    name: str
    says: str
    text: str


def command_pages() -> Iterator[CommandPage]:
    """`gapless` itself, then every command, and every command of a command."""
    whole = typer.main.get_command(app)
    context = whole.make_context("gapless", [], resilient_parsing=True)
    yield from _of(whole, context, [])


# Commands and contexts are click's, which typer keeps to itself: to mypy they are anything.


def _of(command: Any, context: Any, path: list[str]) -> Iterator[CommandPage]:
    words = " ".join(["gapless", *path])
    says = " ".join((command.help or "").split("\n\n")[0].split())
    below = getattr(command, "commands", {})
    yield CommandPage(words.replace(" ", "-"), says.rstrip("."), "\n".join(_page(command, context, path)))
    for name, one in below.items():
        inner = one.make_context(name, [], parent=context, resilient_parsing=True)
        yield from _of(one, inner, [*path, name])


def pages() -> Iterator[tuple[str, str]]:
    """Every page with its place in the site; the first lists the others."""
    first, *others = command_pages()
    contents = toctree(page.name for page in others)
    yield f"{FOLDER}/{first.name}.md", first.text + contents
    yield from ((f"{FOLDER}/{page.name}.md", page.text) for page in others)


def _page(command: Any, context: Any, path: list[str]) -> Iterator[str]:
    words = " ".join(["gapless", *path])
    yield f"# {words}\n"
    yield "## Synopsis\n"
    yield f"**{words}** {_escaped(' '.join(command.collect_usage_pieces(context)).replace('{', '').replace('}', ''))}\n"
    yield "## Description\n"
    for paragraph in _paragraphs((command.help or "").partition("\n\nExamples:")[0]):
        yield f"{paragraph}\n"
    yield from _parameters(command, context)
    if below := getattr(command, "commands", {}):
        yield from _defined(
            "Commands", ((f"`{words} {name}`", one.get_short_help_str(200)) for name, one in below.items())
        )
    known = " ".join(path)
    yield from _defined("Examples", ((f"`{example}`", _escaped(says)) for example, says in examples(known)))
    codes = EXIT_CODES.get(known, {})
    yield from _defined("Exit codes", ((str(code), _escaped(means)) for code, means in codes.items()))


def _parameters(command: Any, context: Any) -> Iterator[str]:
    """Arguments and options, as `--help` tells of them."""
    for title, kind in (("Arguments", "argument"), ("Options", "option")):
        records = (one.get_help_record(context) for one in command.get_params(context) if one.param_type_name == kind)
        yield from _defined(title, ((f"`{OF_A_TYPE.sub('', one[0])}`", _escaped(one[1])) for one in records if one))


def _defined(title: str, what: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Terms and what they mean, under a heading; nothing where there are none."""
    if terms := [f"{term}\n: {says}\n" for term, says in what]:
        yield f"## {title}\n"
        yield from terms


def _paragraphs(text: str) -> Iterator[str]:
    """The description of a command, each paragraph on a line."""
    for paragraph in text.split("\n\n"):
        yield _escaped(" ".join(paragraph.split()))


def _escaped(text: str) -> str:
    """A text in which nothing is markup but for code in backticks."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([\\*_\[\]<>])", r"\\\1", part) for part in parts)
