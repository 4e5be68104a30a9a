"""The protocols of `examples/protocols/`: explored, proved, and with a bug planted into each.

    python -m benchmarks.protocols            # prints the table
    python -m benchmarks.protocols --page     # writes it into docs/protocols.md

`suite.toml` says of each which peer has it, and how many states that publishes. A count of ours is not written down
anywhere: the tests and this table find it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from benchmarks.bigstore import Extent
from gapless.properties.exploration.bounds import Bound
from gapless.properties.exploration.search import Exploration, explore
from gapless.properties.proof import induction, ledger, symbolic
from gapless.properties.proof.terms.boolean_terms import negated
from gapless.spec.catalog import Spec
from gapless.traces.specs import load

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples" / "protocols"
PAGE = ROOT / "docs" / "protocols.md"
BEGIN, END = "<!-- measured: python -m benchmarks.protocols --page -->\n", "<!-- end of what was measured -->\n"
HEADINGS = ("protocol", "a peer has it as", "size", "states", "published", "proved", "planted bug, refuted after")
TIMES = ("explore, s", "prove, s")


class PlantedBug(NamedTuple):
    """A bug: what is replaced by what in the file, the property that it breaks, and after how many steps."""

    sound: str
    wrong: str
    breaks: str
    steps: int


@dataclass(frozen=True)
class Protocol:
    """A protocol of the suite; `suite.toml` says what each field means."""

    name: str
    title: str
    peer: str
    planted: PlantedBug
    proved: Literal["any", "fixed", "no"]
    size: str = ""
    constant: str = ""
    more: int = 0
    count: Mapping[str, int] = field(default_factory=dict)
    night: Mapping[str, int] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        """The spec."""
        return FOLDER / f"{self.name}.py"

    @property
    def counts(self) -> Mapping[str, int]:
        """The published counts, by size."""
        return {**self.count, **self.night}

    def text(self, size: str = "") -> str:
        """The text of the spec at a size; as it is where none is given."""
        text = self.file.read_text(encoding="utf-8")
        line = next((one for one in text.splitlines() if one.startswith(f"{self.size} = ")), "") if self.size else ""
        return replaced(text, f"\n{line}\n", f"\n{self.size} = {size}\n") if size and line else text

    def spec(self, folder: Path, size: str = "", *, wrong: bool = False) -> Spec:
        """The spec at a size, with the planted bug if that is wanted; `folder` is for its file."""
        text = self.text(size)
        path = folder / f"{self.name}.py"
        path.write_text(replaced(text, self.planted.sound, self.planted.wrong) if wrong else text, encoding="utf-8")
        return load(path)


def replaced(text: str, old: str, new: str) -> str:
    """The text with one part replaced, which must stand there once. Raises ValueError."""
    if text.count(old) != 1:
        raise ValueError(f"{old!r} stands {text.count(old)} times in the file: it must stand there once")
    return text.replace(old, new)


def suite() -> dict[str, Protocol]:
    """All protocols by name, in the order of `suite.toml`."""
    known: dict[str, dict[str, Any]] = tomllib.loads((FOLDER / "suite.toml").read_text(encoding="utf-8"))
    return {
        name: Protocol(**{**entry, "name": name, "planted": PlantedBug(*entry["planted"])})
        for name, entry in known.items()
    }


def explored(spec: Spec) -> Exploration:
    """All states of a protocol within its own bound."""
    return explore(spec, explored_bound(spec))


def explored_bound(spec: Spec) -> Bound:
    """The bound of a protocol: each of the suite has one."""
    assert spec.bound is not None  # noqa: S101 - as above
    return spec.bound


def obligations(spec: Spec) -> Iterator[induction.Obligation]:
    """The obligations of induction: the beginning, and each step with each property.

    That each step can happen is shown by exploration, which takes it.
    """
    return (one for one in induction.obligations(spec) if one.invariant != induction.CAN_HAPPEN)


def unproved(spec: Spec) -> list[str]:
    """The obligations of a spec that are not proved, each as its step and its property."""
    entries = map(ledger.settle, obligations(spec))
    return [f"{entry.step}: {entry.invariant}: {entry.result}" for entry in entries if entry.result != "proved"]


def unproved_at_first(spec: Spec, size: str) -> list[str]:
    """The invariants that are not proved of the beginning, whatever number a field of the state has there.

    No step changes the field. So what is proved of the steps, from any state, and of the beginning, is so for any size.
    """
    theory = induction.theory(spec, False, None)  # noqa: FBT003 - cached by what it is of
    begun = replace(symbolic.symbolic(spec.initial), **{size: getattr(theory.before, size)})
    wrong = []
    for holds in theory.invariants:
        free = symbolic.unknown_arguments(holds, tag="some ")
        with symbolic.read(theory.reading):
            broken = negated(symbolic.formula(holds, begun, *free.values()))
        if induction.ask([broken]).verdict != "unsat":
            wrong.append(holds.__name__)
    return wrong


def changed(spec: Spec, size: str) -> list[str]:
    """The steps after which a field may have another number than before."""
    theory = induction.theory(spec, False, None)  # noqa: FBT003 - as above
    outcomes = {name: theory.ways(step)[1] for name, step in spec.actions.items()}
    return [
        name
        for name, ways in outcomes.items()
        if any(getattr(way.outcome, size) is not getattr(theory.before, size) for way in ways if way.accepted)
    ]


FINITE = (("two_phase_commit", "7", ()), ("two_phase_commit", "7", ("--symmetry",)), ("paxos_commit", "2", ()))
"""Protocols whose exploration has a row in `make bench`, each with its size and with options."""


def finite_rows(stores: Path) -> Iterator[tuple[str, list[str], Extent, bool, bool, bool]]:
    """Rows of the benchmarks: whole commands, from the start of the process; states stand where records do."""
    for name, size, options in FINITE:
        folder = stores / "protocols" / size
        folder.mkdir(parents=True, exist_ok=True)
        spec = suite()[name].spec(folder, size)
        found = explore(spec, explored_bound(spec), symmetry=bool(options))
        command = [sys.executable, "-m", "gapless", "explore", str(folder / f"{name}.py"), *options]
        says = f"explore {name}, {size}{' folded' if options else ''}, whole command, states"
        yield says, command, Extent(found.unfolded, 0), True, False, False


# -- the table -----------------------------------------------------------------------------------------------------


PROVED = {"any": "for any size", "fixed": "yes", "no": "–"}


def cells(protocol: Protocol, size: str) -> tuple[str, ...]:
    """The cells of a row that are known without measuring; tests find out that they are so."""
    published = protocol.counts[size]
    planted = protocol.planted
    more = f"{published:,} + {protocol.more}" if protocol.more else f"{published:,}"
    return (
        f"[{protocol.title}](../examples/protocols/{protocol.name}.py)",
        protocol.peer,
        f"{size}",
        f"{published + protocol.more:,}",
        more,
        PROVED[protocol.proved],
        f"{planted.breaks.replace('_', ' ')}: {planted.steps}",
    )


def rows() -> Iterator[tuple[str, ...]]:
    """The rows of the table: a protocol at a size, with its seconds."""
    with tempfile.TemporaryDirectory() as folder:
        for protocol in suite().values():
            for size in protocol.counts:
                spec = protocol.spec(Path(folder), size)
                found = explored(spec)
                if found.states != protocol.counts[size] + protocol.more or found.result != "holds":
                    raise SystemExit(f"{protocol.name}, {size}: {found.states} states, {found.result}")
                began = time.perf_counter()
                proved = "–" if protocol.proved == "no" or unproved(spec) else f"{time.perf_counter() - began:.1f}"
                seconds = (explored(spec) if found.native else found).seconds  # without the compiler
                yield (*cells(protocol, size), f"{seconds:.2f}", proved)


def table(found: Iterator[tuple[str, ...]]) -> str:
    """The table in Markdown."""
    lines = [HEADINGS + TIMES, ("--", "--", "--:", "--:", "--:", "--", "--", "--:", "--:"), *found]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    """Print the table, or write it into its page."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--page", action="store_true", help="write the table into docs/protocols.md")
    measured = table(rows())
    if not options.parse_args().page:
        print(measured, end="")
        return
    before, _, after = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{measured}\n{END}{after.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
