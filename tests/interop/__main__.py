"""A real RocketMQ broker opens our stores, serves them, continues them, and returns them.

python -m tests.interop [--version 5.5.0] [--build build]

Exit codes: 0 all was as expected, or skipped for want of Java or Maven; 1 not. Leaves build/interop behind.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from rich.console import Console

from gapless.impl.records.errors import StoreError
from tests.interop import jars, makers, ours, rounds
from tests.interop.broker import BrokerFailure
from tests.interop.damage import plant
from tests.interop.halves import stories as halves
from tests.interop.network import enter_a_network_of_its_own
from tests.interop.remoting import Refused
from tests.interop.rounds import Step
from tests.interop.setup import Setup
from tests.interop.written import WrittenStore

BATCHED_OPS = (5, 1)  # the first version that has them
SHOWN = 12  # lines of what is wrong with a step


def main() -> int:
    """Every store in turn; a line for each step."""
    parser = argparse.ArgumentParser(prog="python -m tests.interop", description="Does a real broker take our stores?")
    parser.add_argument("--version", default="5.5.0", help="of RocketMQ")
    parser.add_argument("--build", type=Path, default=Path("build"), help="where jars and stores are kept")
    parser.add_argument("--only", metavar="STORE", help=f"one of: {', '.join(STORIES)}")
    chosen = parser.parse_args()
    stories = {name: story for name, story in STORIES.items() if chosen.only in (None, name)}
    if not stories:
        parser.error(f"there is no store {chosen.only!r}")
    console = Console(highlight=False, soft_wrap=True)
    for asked in (signal.SIGINT, signal.SIGTERM):
        signal.signal(asked, lambda *_: sys.exit("interrupted"))  # so that brokers are ended on the way out
    try:
        tools = jars.find_tools()
        found = jars.fetch(tools, chosen.version, chosen.build)
    except jars.MissingTool as missing:
        console.print(f"skipped: {missing}")
        return 0
    except jars.FetchFailure as error:
        console.print(str(error), markup=False)
        return 1
    if warning := enter_a_network_of_its_own("tests.interop"):
        console.print(warning)
    console.print(f"RocketMQ {chosen.version}, {tools.java}, stores in {chosen.build}/interop")
    if not chosen.only and tuple(map(int, chosen.version.split(".")[:2])) < BATCHED_OPS:
        console.print("note: no stores with open halves: before 5.1 a broker reads an op as one half")
        stories = {name: story for name, story in stories.items() if name not in halves.STORIES}
    setup = Setup(tools.java, found, chosen.build / "interop")
    failed = [name for name, story in stories.items() if not _show(console, name, partial(story, setup, name))]
    console.print(f"[red]not as it should be: {', '.join(failed)}" if failed else "[green]all as it should be")
    return int(bool(failed))


def _show(console: Console, name: str, story: Callable[[], Iterator[Step]]) -> bool:
    """Return True if every step of a story went well."""
    console.print(f"\n[bold]{name}")
    well = True
    try:
        for step in story():
            console.print(f"  {'[red]✗[/]' if step.wrong else '[green]✓[/]'} {step.what:36} ", end="")
            console.print(step.seen, markup=False)
            for line in step.wrong[:SHOWN]:
                console.print(f"      {line}", markup=False)
            if len(step.wrong) > SHOWN:
                console.print(f"      and {len(step.wrong) - SHOWN} more")
            well &= not step.wrong
    except (BrokerFailure, Refused, StoreError, OSError) as error:
        console.print(f"  [red]✗[/] {type(error).__name__}: ", end="")
        console.print(str(error), markup=False)
        return False
    return well


def _closed(setup: Setup, name: str) -> Iterator[Step]:
    """A store that was closed in order."""
    home = setup.fresh(name)
    written, wrong = makers.make_store(home / "store", clean=True)
    yield Step("a store is written and closed", f"{written.count} messages, {len(written.queues)} queues", wrong)
    yield rounds.look(home / "store", written)
    yield rounds.check(home, written)
    yield from _go_back_and_forth(setup, name, written)


def _abandoned(setup: Setup, name: str) -> Iterator[Step]:
    """Let the broker recover a store that was never closed."""
    home = setup.fresh(name)
    written, wrong = makers.make_store(home / "store", clean=False)
    yield Step("a store is written and abandoned", f"{written.count} messages, {len(written.queues)} queues", wrong)
    yield rounds.look(home / "store", written, missing=written.unindexed)
    yield rounds.check(home, written, indexed=False)
    yield from _go_back_and_forth(setup, name, written)


def _go_back_and_forth(setup: Setup, name: str, written: WrittenStore) -> Iterator[Step]:
    """Let a broker continue the store, then our implementation, then the broker again."""
    home = setup.work / name
    broker = setup.broker(name)
    yield from rounds.visit(broker, written, send=True)
    yield rounds.check(home, written)
    yield from ours.visit(home, written)
    yield rounds.look(home / "store", written)
    yield rounds.check(home, written, index_stands=True)
    yield from rounds.visit(broker, written, send=False)
    yield rounds.check(home, written, index_stands=True)
    yield rounds.complain(broker)


def _damaged(setup: Setup, name: str) -> Iterator[Step]:
    """A store with faults, so that it is seen that they would be."""
    home = setup.fresh(name)
    written, _ = makers.make_store(home / "store", clean=True)
    planted = plant(home / "store", written)
    yield from rounds.notice(setup.broker(name), written, planted)


STORIES = {"closed": _closed, "abandoned": _abandoned, "damaged": _damaged} | halves.STORIES


if __name__ == "__main__":
    sys.exit(main())
