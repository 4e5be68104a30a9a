"""The command line: what `gapless --help` says, and its commands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from gapless.commands.audit import audit
from gapless.commands.check import check
from gapless.commands.compare import compare
from gapless.commands.configured import defaults
from gapless.commands.demo import demo
from gapless.commands.examples import OVERVIEW, as_text, epilog
from gapless.commands.explain import explain
from gapless.commands.explore import explore
from gapless.commands.generate import generate
from gapless.commands.prove import prove
from gapless.commands.record import record
from gapless.commands.rules import rules
from gapless.commands.schema import schema
from gapless.commands.serve import serve
from gapless.commands.steps import steps
from gapless.commands.terminal import failed, printing
from gapless.commands.trace import trace
from gapless.commands.usage import Commands
from gapless.commands.warm import warm
from gapless.commands.watch import watch
from gapless.extras import remedy

app = typer.Typer(
    cls=Commands,
    help="Check what log-based message brokers did against what they promise.",
    epilog=f"Examples:\n\n{as_text(OVERVIEW)}\n\nEach command has --help, with examples and exit codes.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def version(asked: bool) -> None:  # noqa: FBT001 - a flag is what it is
    """Print it, and nothing else."""
    if asked:
        from gapless import __version__

        print(f"gapless {__version__}")
        raise typer.Exit


@app.callback()
def configured(
    context: typer.Context,
    *,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=version, is_eager=True)
    ] = False,
) -> None:
    """Take from `[tool.gapless]` what the command line leaves out."""
    context.default_map = {**defaults(), **(context.default_map or {})}


COMMANDS: dict[Callable[..., None], str] = {
    check: "Judge stores and recordings: is anything lost, repeated, undecided?",
    watch: "Follow a store while its broker writes to it.",
    compare: "Compare the replicas of a store with one another.",
    explain: "Tell the shortest story of one trace.",
    trace: "Write the events of a store or a recording to a file.",
    demo: "Check a real broker's store, whole and damaged: what a finding looks like.",
    record: "Run our own store on a workload, and leave it to be checked.",
    prove: "Prove every invariant of a spec, from any state.",
    rules: "List every rule, and what goes wrong without it.",
    steps: "List the steps of a spec, as a recorder writes them.",
    schema: "Print a JSON Schema of what is read or written.",
    explore: "Try every step of a spec in every state within bounds.",
    generate: "Write runs of a spec that together meet every rule.",
    audit: "List the faults in a spec that no property of it catches.",
    warm: "Compile now what checks and stores compile on the way.",
}
"""The commands, and what the list of commands says of each."""

for command, short in COMMANDS.items():
    app.command(short_help=short, epilog=epilog(command.__name__))(command)
app.add_typer(serve, name="serve")


def main() -> None:
    """The `gapless` command. What says how it is used is output as any other, for which there may be no reader or room.

    The library of commands ends with 1 if no reader is left, and 1 means that something departs.
    """
    try:
        with printing(0):
            try:
                app()
            except SystemExit as ended:
                if isinstance(ended.__context__, BrokenPipeError):
                    raise ended.__context__ from None
                raise
            except ModuleNotFoundError as error:
                if not (sentence := remedy(error)):
                    raise
                raise failed(sentence) from None
            finally:
                sys.stdout.flush()  # a command ends by SystemExit
    except typer.Exit as ended:
        sys.exit(ended.exit_code)
