"""The group of all commands: its help by groups, and one sentence for a command line that cannot be understood."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from gapless.commands.examples import examples

UsageError: type[Any] = typer.BadParameter.__mro__[1]
"""The error of the library of commands for wrong usage, which it does not export."""

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Check what a broker did": ("check", "explain", "watch", "compare", "rules", "demo"),
    "Your own spec": ("prove", "explore", "generate", "audit", "steps"),
    "Events": ("trace", "schema"),
    "Our own store, and this installation": ("record", "serve", "warm"),
}
"""The commands in the order of the help; a command in no group comes last."""

EXTRA = re.compile(r"unexpected extra arguments?(?:\(s\))? \((.*)\)", re.DOTALL)
CHOICE = re.compile(r"is not one of (.*?)\.?$", re.DOTALL)
NO_FILE = re.compile(r"^\w+ '(.*)' (does not exist|is a directory|is a file|is not readable)", re.DOTALL)
INSTEAD = {"is a directory": "is a folder, expected a file", "is a file": "is a file, expected a folder"}

# Contexts, parameters and errors are click's, which typer keeps to itself: to mypy they are anything.


class Commands(TyperGroup):
    """The commands of `gapless`, or those of one of them."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, by groups, before the options."""
        left = self._in_no_group()
        for title, names in (*GROUPS.items(), ("More" if len(left) < len(self.commands) else "Commands", left)):
            rows = [(name, self.commands[name].get_short_help_str(200)) for name in names if name in self.commands]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        records = (one.get_help_record(ctx) for one in self.get_params(ctx))
        with formatter.section("Options"):
            formatter.write_dl([record for record in records if record])

    def _in_no_group(self) -> tuple[str, ...]:
        grouped = {name for names in GROUPS.values() for name in names}
        return tuple(name for name in self.commands if name not in grouped)

    def make_context(self, *arguments: Any, **named: Any) -> Any:
        """Read the options before a command. Raises typer.Exit where they cannot be understood."""
        with in_one_line(None):
            return super().make_context(*arguments, **named)

    def invoke(self, ctx: Any) -> Any:
        """Run a command. Raises typer.Exit where its command line cannot be understood."""
        with in_one_line(ctx):
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that a command line names. Raises typer.Exit where there is none."""
        if args and args[0] not in self.commands and not ctx.resilient_parsing:
            raise _refused(_words(ctx), _no_command(_words(ctx), args[0], list(self.commands)))
        return super().resolve_command(ctx, args)


def _refused(words: str, sentence: str) -> typer.Exit:
    """The exit after one sentence that begins with the words of the command."""
    typer.echo(f"{words}: {sentence}", err=True)
    return typer.Exit(2)


def _no_command(words: str, name: str, commands: list[str]) -> str:
    """The sentence for a word that is no command: it may be an option, or a path that was meant to be checked."""
    from gapless.traces.problems import pasted, shown
    from gapless.traces.suggestions import did_you_mean

    if words == "gapless" and name and Path(name).exists():
        return f"{shown(name)} is no command; to check it: gapless check {pasted(name)}"
    if hint := did_you_mean(name, commands):
        return f"no such command: {shown(name)}{hint}"
    return f"no such command: {shown(name)} ({words} --help lists them)"


@contextmanager
def in_one_line(group: Any) -> Iterator[None]:
    """End a command whose line cannot be understood with one sentence on standard error."""
    try:
        yield
    except UsageError as error:
        if "Help" in type(error).__name__:  # the help itself is the message
            raise
        words, sentence = _words(error.ctx), _sentence(error)
        if error.ctx is None and group is not None:  # the library knows no more than the option
            words = f"{_words(group)} {group.invoked_subcommand or ''}".rstrip()
        raise _refused(words, sentence if "did you mean" in sentence else f"{sentence} (see {words} --help)") from None


def _words(ctx: Any) -> str:
    """The words of a command, from `gapless` on, whatever the program was started as."""
    words: list[str] = []
    while ctx is not None and ctx.parent is not None:
        words.insert(0, ctx.info_name)
        ctx = ctx.parent
    return " ".join(["gapless", *words])


def _sentence(error: Any) -> str:
    """The mistake in a command line, and the form that was expected."""
    from gapless.traces.problems import shown
    from gapless.traces.suggestions import did_you_mean

    name = getattr(error, "option_name", None)
    if name is not None and hasattr(error, "possibilities"):
        return f"no such option: {shown(name)}{_of_other(error.ctx, name) or did_you_mean(name, _options(error.ctx))}"
    if hasattr(error, "param_type"):
        return _missing(error)
    parameter = getattr(error, "param", None)
    if parameter is not None:
        return f"{_wrong_value(error, _label(parameter))}{_from_settings(error)}"
    if name is not None:
        return f"{name} {'takes no value' if 'not take' in error.message else 'needs a value'}"
    text = error.format_message().rstrip(".")
    if match := EXTRA.search(text):
        trace = error.ctx is not None and error.ctx.info_name == "explain"
        return f"unexpected: {shown(match[1])}{' (a trace is named by --trace)' if trace else ''}"
    return f"{text[:1].lower()}{shown(text[1:])}"


def _options(ctx: Any) -> list[str]:
    return [name for one in ctx.command.get_params(ctx) for name in (*one.opts, *one.secondary_opts) if name[:1] == "-"]


def _of_other(ctx: Any, name: str) -> str:
    """The commands that have an option that this one lacks."""
    root = ctx.find_root().command
    having = [
        other
        for other, command in getattr(root, "commands", {}).items()
        if any(name in one.opts for one in command.params)
    ]
    return f" (it is one of gapless {' and gapless '.join(having[:3])})" if having else ""


def _label(parameter: Any) -> str:
    """The option, or the argument as the help calls it."""
    if parameter.param_type_name == "option":
        return str(max(parameter.opts, key=len))
    return str(parameter.metavar or parameter.name.upper()).strip("[]{}. ")


def _from_settings(error: Any) -> str:
    """A remark about a value that no command line has: it comes from pyproject.toml."""
    given = (getattr(error.ctx, "default_map", None) or {}).get(error.param.name)
    written = error.ctx.get_parameter_source(error.param.name) if given is not None else None
    return "" if written is None or written.name == "COMMANDLINE" else " (from [tool.gapless] in pyproject.toml)"


def _missing(error: Any) -> str:
    """The sentence for an argument or an option that is required."""
    parameter = error.param
    if parameter is None:
        return str(error.format_message())
    if parameter.param_type_name == "option":
        return f"{_label(parameter)} {parameter.metavar or ''} is missing: {parameter.help}".rstrip(".")
    words = " ".join(_words(error.ctx).split()[1:])
    shown = next(iter(examples(words)), ("", ""))[0]
    return f"{_label(parameter)} is missing{f', as in: {shown}' if shown else ''}"


def _wrong_value(error: Any, label: str) -> str:
    """The sentence for a value that an option or an argument does not take."""
    from gapless.traces.problems import os_problem, shown
    from gapless.traces.suggestions import did_you_mean, one_of
    from gapless.traces.validation import expectation

    cause, message = error.__cause__, str(error.message)
    details = cause.errors()[0] if hasattr(cause, "errors") else {}
    given = str(details.get("input", "")) or message.partition(" is not")[0].strip("'")
    if match := CHOICE.search(message):
        names = re.findall(r"'([^']*)'", match[1])
        return f"{label} {shown(given)}: expected {one_of(names)}{did_you_mean(given, names)}"
    if details:
        return f"{label} {shown(given)}: expected {expectation(details)}"
    if match := NO_FILE.match(message):
        path, why = Path(match[1]), match[2]
        if why == "does not exist":
            return f"{label} {shown(path)}: no such file{_similar_file(path)}"
        if why in INSTEAD:
            return f"{label} {shown(path)}: {INSTEAD[why]}"
        return f"{label}: {os_problem(PermissionError(13, 'Permission denied', str(path)))}"
    return f"{label}: {shown(message.rstrip('.'))}"


def _similar_file(path: Path) -> str:
    """A clause in parentheses: the file of a similar name in the folder of `path`, or the files in it."""
    from gapless.traces.problems import shown
    from gapless.traces.suggestions import did_you_mean, first_of

    folder = path.parent
    if not folder.is_dir():
        return f" (there is no {shown(folder)})"
    try:
        names = sorted(one.name for one in folder.iterdir() if one.is_file() and not one.name.startswith("."))
    except OSError:
        return ""
    files = f" (files in {shown(folder)}: {shown(first_of(names, 5))})" if names else ""
    return did_you_mean(path.name, names) or files
