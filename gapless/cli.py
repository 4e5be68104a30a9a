"""The command line: what `gapless --help` says, and its commands."""

from __future__ import annotations

from typing import Annotated

import typer

from gapless.commands.audit import audit
from gapless.commands.check import check
from gapless.commands.configured import defaults
from gapless.commands.explain import explain
from gapless.commands.explore import explore
from gapless.commands.prove import prove
from gapless.commands.record import record
from gapless.commands.rules import rules
from gapless.commands.schema import schema
from gapless.commands.serve import serve
from gapless.commands.steps import steps
from gapless.commands.trace import trace
from gapless.commands.warm import warm

EXAMPLES = """
Hold what log-based message brokers did against what they promise.

Examples:

\b
gapless check /var/lib/rocketmq/store
  is every message in its queue, every transaction decided?
gapless check store --client client.ndjson
  is anything lost that clients were promised?
gapless check a/store b/store --report out.html
  several stores, and a page to look at
gapless explain store --trace TopicTest/3
  the shortest story of one queue
gapless trace store --out events.parquet
  the events of a store, to query or to check again
gapless check recording
  a recorded Pulsar coordinator: its limit, one outcome for each
gapless record trial --faults crash,torn
  run our own store, and leave it with its traces, to be checked
gapless serve coordinator data --max 100
  run a transaction coordinator that has room for a hundred
gapless rules
  what is checked, and what goes wrong without it
gapless steps queue
  what a recorder writes: steps, arguments, units
gapless schema events
  the same as a JSON Schema; also of report and client
gapless prove transaction
  that the model keeps its own invariants, from any state
gapless prove lease.py
  the same of a spec of yours (docs/your-own-spec.md)
gapless explore queue --graph queue.html
  every state of a spec within small bounds, as a picture
gapless audit lease.py
  which faults in a spec of yours nobody would notice
gapless warm
  compile all that checks compile on the way, once, beforehand

Exit codes of check: 0 conforms, 1 departs, 2 unreadable or wrong usage, 3 inconclusive, 130 interrupted.
Of prove: 0 all holds, 1 something does not, and here is the story, 2 wrong usage, 3 unknown or out of budget.
"""

app = typer.Typer(help=EXAMPLES, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)


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
    """What `[tool.gapless]` says, where a command line says nothing."""
    context.default_map = {**defaults(), **(context.default_map or {})}


for command in (check, explain, trace, record, prove, rules, steps, schema, explore, audit, warm):
    app.command()(command)
app.add_typer(serve, name="serve")


def main() -> None:
    """The `gapless` command."""
    app()
