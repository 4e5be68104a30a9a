"""Boots real brokers on damaged stores, and writes the class of each start into `cells.csv`.

    python -m tests.interop.starts [--line 5.5.0] [--only config/topics.json] [--again] [--remedies] [--build build]

A cell that is known is not tried again, but for `--again`. A boot takes some three to fifteen seconds.
Exit codes: 0 all were tried, or skipped for want of Java or Maven; 1 jars could not be had.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console

from tests.interop import jars
from tests.interop.network import enter_a_network_of_its_own
from tests.interop.starts import cells as table
from tests.interop.starts.bases import LINES, fresh_base, pack
from tests.interop.starts.cells import LOSES, NOTHING_LOST, REFUSES, Cell, Outcome
from tests.interop.starts.plan import cells
from tests.interop.starts.remedies import remedy_of
from tests.interop.starts.trial import JVM, Boots


def main() -> int:
    """Try the cells that are asked for, a line for each."""
    parser = argparse.ArgumentParser(prog="python -m tests.interop.starts", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--line", action="append", choices=LINES, help="a version of RocketMQ; default: all")
    parser.add_argument("--only", default="", metavar="TEXT", help="cells whose file, damage or base has this text")
    parser.add_argument("--again", action="store_true", help="cells that are known, too")
    parser.add_argument("--remedies", action="store_true", help="try the remedies of cells that refuse or lose")
    parser.add_argument("--pack", action="store_true", help="pack the base stores as recordings, and end")
    parser.add_argument("--cells", type=Path, default=table.FILE, help="the file of outcomes; default: %(default)s")
    parser.add_argument("--build", type=Path, default=Path("build/starts"), help="where jars and stores are kept")
    parser.add_argument(
        "--jars", type=Path, help="a folder with a folder jars-LINE for each line, if not to be fetched"
    )
    chosen = parser.parse_args()
    console = Console(highlight=False, soft_wrap=True, markup=False)
    for asked in (signal.SIGINT, signal.SIGTERM):
        signal.signal(asked, lambda *_: sys.exit("interrupted"))  # so that the broker is ended on the way out
    lines: Sequence[str] = chosen.line or LINES
    try:
        tools = jars.find_tools()
        found = {
            line: chosen.jars / f"jars-{line}" if chosen.jars else jars.fetch(tools, line, chosen.build)
            for line in lines
        }
    except jars.MissingTool as missing:
        console.print(f"skipped: {missing}")
        return 0
    except jars.FetchFailure as error:
        console.print(str(error))
        return 1
    if warning := enter_a_network_of_its_own("tests.interop.starts"):
        console.print(warning)
    lab = Lab(chosen.build, tools.java, found)
    if chosen.pack:
        lab.pack()
        return 0
    known = table.read(chosen.cells)
    for cell in (_with_remedies if chosen.remedies else _to_boot)(lines, known, again=chosen.again):
        if chosen.only in f"{cell.file} {cell.damage} {cell.base} {cell.ending}":
            began = time.monotonic()
            outcome = lab.cure(cell, known[cell]) if chosen.remedies else lab.boot(cell)
            known = table.read(chosen.cells) | {cell: outcome}
            table.write(known, chosen.cells)
            console.print(f"{time.monotonic() - began:5.1f} s", *vars(cell).values(), "=>", *vars(outcome).values())
    return 0


def _to_boot(lines: Sequence[str], known: dict[Cell, Outcome], *, again: bool) -> Iterator[Cell]:
    """The cells of the plan, each line in turn."""
    plans = [list(cells(line)) for line in lines]
    for rank in range(max(map(len, plans))):
        yield from (plan[rank] for plan in plans if rank < len(plan) and (again or plan[rank] not in known))


def _with_remedies(lines: Sequence[str], known: dict[Cell, Outcome], *, again: bool) -> Iterator[Cell]:
    """The known cells that refuse or lose: of a file and a remedy, the first of each line."""
    tried = {(cell.line, cell.file, cell.backup, one.remedy) for cell, one in known.items() if one.remedy and not again}
    for cell, outcome in known.items():
        what = (cell.line, cell.file, cell.backup, remedy_of(cell)[0])
        if cell.line in lines and outcome.result in (REFUSES, LOSES) and what not in tried:
            tried.add(what)
            yield cell


@dataclass
class Lab:
    """The base stores and brokers of all lines, made when they are first wanted."""

    build: Path
    java: str
    jars: dict[str, Path]
    boots: dict[tuple[str, str, str], Boots] = field(default_factory=dict)

    def boot(self, cell: Cell) -> Outcome:
        """Boot a broker on the damaged store."""
        return self._of(cell).boot(cell)

    def cure(self, cell: Cell, outcome: Outcome) -> Outcome:
        """Apply the remedy to the damaged store, and boot."""
        says, remedy = remedy_of(cell)
        cured = self._of(cell).boot_after(cell, remedy)
        after = cured.exception if cured.result == REFUSES else cured.lost
        return replace(outcome, remedy=says, after=f"{cured.result}: {after}" if after else NOTHING_LOST)

    def pack(self) -> None:
        """Pack all base stores that there are."""
        for home in sorted((self.build / "bases").iterdir()):
            line, base, ending = home.name.split("-")
            pack(home, f"{base}_{line}_{ending}")

    def _of(self, cell: Cell) -> Boots:
        key = (cell.line, cell.base, cell.ending)
        if key not in self.boots:
            home = self.build / "bases" / "-".join(key)
            jvm = self._jvm(cell.line)
            if not (home / "store").exists():
                fresh_base(home, self.jars[cell.line], self.java, key, jvm)
            boots = Boots(
                self.jars[cell.line], self.java, cell.line, cell.base, home / "store", self.build / "work", jvm
            )
            seen = home / "sound.json"
            if seen.exists():
                boots.sound = json.loads(seen.read_text())
            else:
                boots.look_at_the_sound()
                seen.write_text(json.dumps(boots.sound, indent=1))
            self.boots[key] = boots
        return self.boots[key]

    def _jvm(self, line: str) -> tuple[str, ...]:
        """Return the options of Java, with an archive of the classes of this line's broker if there is one."""
        archive = self.build / f"cds-{line}.jsa"
        return (*JVM, f"-XX:SharedArchiveFile={archive}") if archive.exists() else JVM


if __name__ == "__main__":
    sys.exit(main())
