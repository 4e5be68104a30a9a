"""The command line. It asks and prints; what is judged, and how, is `gapless.traces`."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from gapless.spec.catalog import PROFILES, SPECS, Spec

if TYPE_CHECKING:
    from gapless.properties.exploration.search import Explored
    from gapless.properties.proof.ledger import Entry, Ledger
    from gapless.traces.engines.engine import Progress
    from gapless.traces.report.values import Report

EXAMPLES = """
Hold what log-based message brokers did against what they promise.

Examples:

  gapless check /var/lib/rocketmq/store            is every message in its queue, every transaction decided?

  gapless check store --client client.ndjson       is anything lost that clients were promised?

  gapless check a/store b/store --report out.html  several stores, and a page to look at

  gapless explain store --trace TopicTest/3        the shortest story of one queue

  gapless trace store --out events.parquet         the events of a store, to query or to check again

  gapless check recording                          a recorded Pulsar coordinator: its limit, one outcome for each

  gapless record trial --faults crash,torn         run our own store, and leave it with its traces, to be checked

  gapless rules                                    what is checked, and what goes wrong without it

  gapless prove transaction                        that the model keeps its own invariants, from any state

  gapless explore queue --graph queue.html         every state of a spec within small bounds, as a picture

Exit codes of check: 0 conforms, 1 departs, 2 unreadable or wrong usage, 3 inconclusive.
Of prove: 0 all holds, 1 something does not, and here is the story, 2 wrong usage, 3 unknown or out of budget.
"""

app = typer.Typer(
    help=EXAMPLES, no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
)
Profile = StrEnum("Profile", list(PROFILES))  # type: ignore[misc] # its members are known where the specs are


class Engine(StrEnum):
    """Who does the work."""

    auto = "auto"
    local = "local"
    spark = "spark"


class Flush(StrEnum):
    """When a message counts as taken."""

    asynchronous = "async"
    synchronous = "sync"


class Form(StrEnum):
    """How events are written down."""

    parquet = "parquet"
    ndjson = "ndjson"


Paths = Annotated[
    list[Path],
    typer.Argument(
        help="Store directories, folders that hold a store/ or a Pulsar recording, or files of events (.parquet, "
        ".ndjson).",
        show_default=False,
    ),
]
OnePath = Annotated[
    Path,
    typer.Argument(
        help="A store directory, a folder that holds a store/ or a Pulsar recording, or a file of events.",
        show_default=False,
    ),
]
ProfileOption = Annotated[
    Profile | None,
    typer.Option(
        help="Whose known deviations are anomalies rather than violations; by default the broker's that wrote it.",
        show_default=False,
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        help="The broker's broker.conf; one beside the store is found by itself.",
        exists=True,
        dir_okay=False,
        readable=True,
        show_default=False,
    ),
]

ClientOption = Annotated[
    Path | None,
    typer.Option(
        help="What clients asked and were answered; a client.ndjson beside the store is found by itself.",
        exists=True,
        dir_okay=False,
        readable=True,
        show_default=False,
    ),
]


@app.command()
def check(
    paths: Paths,
    profile: ProfileOption = None,
    config: ConfigOption = None,
    client: ClientOption = None,
    topic: Annotated[str | None, typer.Option(help="Judge only this topic's queues.", show_default=False)] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Judge only this rule (repeatable).", show_default=False)
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="Let this rule be broken.", show_default=False)] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Processes, or Spark tasks at a time; by default as many as pay.", show_default=False),
    ] = None,
    engine: Annotated[Engine, typer.Option(help="Who does the work; auto is local.")] = Engine.auto,
    master: Annotated[
        str | None, typer.Option(help="The Spark cluster; local[*] if none is named.", show_default=False)
    ] = None,
    json: Annotated[
        Path | None, typer.Option(help="Write the report as JSON; - for standard output.", show_default=False)
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write the report as an HTML page.", show_default=False)] = None,
    verdicts: Annotated[
        Path | None,
        typer.Option(help="Make a directory of Parquet files: the verdict of every trace.", show_default=False),
    ] = None,
    verbose: Annotated[  # noqa: FBT002 - a flag is what it is
        bool, typer.Option("--verbose", "-v", help="Show every queue and rule.")
    ] = False,
) -> None:
    """Check that every message is in its queue, once, in order, intact, and every transaction decided."""
    from gapless.traces.check import check as run
    from gapless.traces.problems import UsageError
    from gapless.traces.report import rendering as reports

    try:
        with _progress() as progress:
            found = run(
                paths,
                profile=profile.value if profile else None,
                config=config,
                client=client,
                topic=topic,
                only=only or (),
                ignore=ignore or (),
                jobs=jobs,
                engine=engine.value,
                master=master,
                verdicts=verdicts,
                progress=progress,
            )
    except UsageError as error:
        raise _failed(str(error)) from None
    with _printing(found.exit_code):
        if json:
            _write(json, found.model_dump_json(by_alias=True, indent=1) + "\n")
        if report:
            _write(report, reports.html(found))
        if str(json) != "-":
            reports.text(found, _Console(highlight=False, soft_wrap=True), verbose=verbose)
            if report:
                print(f"report: {report}")
            if verdicts and verdicts.is_dir():
                print(f"verdicts: {verdicts}")
    raise typer.Exit(found.exit_code)


@app.command()
def explain(
    path: OnePath,
    trace: Annotated[
        str, typer.Option(help="commitlog, TOPIC/QUEUE, the key of a transaction, or tc0.", show_default=False)
    ],
    profile: ProfileOption = None,
    config: ConfigOption = None,
    client: ClientOption = None,
) -> None:
    """Tell the shortest story of one trace: where it departs and why, or that it does not."""
    from gapless.traces.check import check as run

    with _progress() as progress:
        found = run(
            [path],
            profile=profile.value if profile else None,
            config=config,
            client=client,
            trace=trace,
            progress=progress,
        )
    with _printing(found.exit_code):
        _told(found, trace)
    raise typer.Exit(found.exit_code)


def _told(found: Report, trace: str) -> None:
    from gapless.traces.problems import shown

    told = [finding for finding in found.violations if finding.trace == shown(trace)]
    if not told and found.verdict == "departs":
        print(f"{shown(trace)} does not depart by itself; what does is another trace: gapless check tells of it.")
    for finding in told:
        print("\n".join(finding.story), end="\n\n")
    source = found.sources[0]
    topic = shown(trace.rpartition("/")[0])
    for line in (*source.reasons, *(note for note in source.notes if topic and topic in note)):
        print(f"{source.path}: {line}")
    if not told and found.verdict == "conforms":
        for row in found.queues:
            print(
                f"{row.topic}/{row.queue} conforms: numbers from {row.first} up to, not including, {row.end}; "
                f"{row.messages:,} messages in the log; entries up to, not including, {row.indexed}."
            )
        if source.kind in ("event-trace", "pulsar-recording"):
            print(f"{shown(trace)} conforms: {found.counts.events:,} events.")
        elif not found.queues and trace.startswith("RMQ_SYS_TRANS_"):
            print(f"{shown(trace)} conforms, if there is such an op: {found.sources[0].records:,} records were read.")
        elif found.life:
            (outcome,) = found.transactions[0].outcomes or ("without a half",)
            print(f"transaction {shown(trace)} conforms: {outcome}.", "", *found.life, sep="\n")
        elif trace == "commitlog":
            print(f"commitlog conforms: {source.records:,} records in {source.bytes:,} bytes of files.")


@app.command()
def trace(
    path: OnePath,
    out: Annotated[Path, typer.Option(help="A file that ends in .parquet or .ndjson.", show_default=False)],
    config: ConfigOption = None,
) -> None:
    """Write the events of a store or a recording, for queries or to check them again elsewhere."""
    from gapless.traces.export import export
    from gapless.traces.problems import NothingThere, Unreadable, UsageError, shown

    try:
        with _progress() as progress:
            events, profile = export(path, out, config=config, progress=progress)
    except (UsageError, Unreadable) as error:
        raise _failed(str(error)) from None
    except NothingThere as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(3) from None
    except OSError as error:
        raise _failed(f"{shown(error.filename or path)}: {error.strerror}") from None
    print(f"{events:,} events in {out}{f'; to check them: --profile {profile}' if profile else ''}")


@app.command()
def record(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A new directory, or an empty one.", show_default=False)
    ],
    messages: Annotated[int, typer.Option(min=0, help="How many to send.")] = 100_000,
    topics: Annotated[int, typer.Option(min=1, max=1000, help="Topics to send to.")] = 2,
    queues: Annotated[int, typer.Option(min=1, max=1000, help="Queues of each topic.")] = 4,
    sizes: Annotated[str, typer.Option(help="Bytes of a body: from..to, or one number.")] = "100..2000",
    rate: Annotated[
        float | None,
        typer.Option(min=0.001, help="Messages a second; as fast as it goes by default.", show_default=False),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, max=100_000, help="Messages in one append.")] = 1,
    flush: Annotated[Flush, typer.Option(help="sync: a message is taken when it is on disk.")] = Flush.asynchronous,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Threads that build the queues.")] = 2,
    overlap: Annotated[  # noqa: FBT002 - a flag is what it is
        bool, typer.Option("--overlap/--alone", help="Whether several workers may be at one queue.")
    ] = True,
    faults: Annotated[
        list[str] | None,
        typer.Option(
            help="What goes wrong: crash, torn, eio, enospc, slow-worker, failing-worker; several with commas.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="The same seed gives the same store.")] = 0,
    form: Annotated[Form, typer.Option("--format", help="Of the traces.")] = Form.parquet,
) -> None:
    """Run our own store on a workload, with faults if you like, and leave in DIR the store and its traces.

    DIR/store is a store directory, DIR/traces has every step that it took, DIR/client.ndjson what producers were told.
    Faults of the disk are those of a simulated one, whose content is then written to DIR/store.

    Exit codes: 0 done, 2 wrong usage, or the disk or the store failed, 130 interrupted: what was sent is there.
    """
    from gapless import recording
    from gapless.impl.store.errors import StoreError
    from gapless.impl.workloads.workload import Workload

    try:
        shortest, longest = recording.sizes(sizes)
        asked = recording.Asked(
            Workload(messages, topics, queues, shortest, longest, rate, seed),
            together=batch,
            synchronous=flush is Flush.synchronous,
            workers=workers,
            overlap=overlap,
            faults=recording.faults(faults or ()),
            form=form.value,
        )
        done = recording.run(folder, asked)
    except (recording.NoRun, StoreError) as error:
        raise _failed(str(error)) from None
    except OSError as error:
        raise _failed(f"{error.filename or folder}: {error.strerror or error}") from None
    code = 0 if done.whole else 130  # as of a process that SIGINT ended
    with _printing(code):
        print("\n".join(done.lines))
    raise typer.Exit(code)


@app.command()
def prove(
    specs: Annotated[
        list[str] | None, typer.Argument(help="The specs to prove; all of them by default.", show_default=False)
    ] = None,
    json: Annotated[
        Path | None, typer.Option(help="Write the ledger as JSON; - for standard output.", show_default=False)
    ] = None,
    budget: Annotated[
        float | None, typer.Option(min=0, help="Seconds after which to stop, come what may.", show_default=False)
    ] = None,
    work: Annotated[
        int | None, typer.Option(min=1, help="What one obligation may cost (Z3's rlimit).", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Z3's random seed.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Specs that are proved at once.")] = 2,
    fresh: Annotated[  # noqa: FBT002 - a flag is what it is
        bool, typer.Option("--fresh", help="Prove all anew, also what was proved of the same definitions before.")
    ] = False,
) -> None:
    """Prove every invariant of the model, from any state and for every bound, and that every step can happen."""
    from gapless.properties.proof import ledger
    from gapless.properties.proof.induction import WORK

    names = tuple(dict.fromkeys(specs or ()))
    if strange := [name for name in names if name not in ledger.subjects()]:
        raise _failed(f"no such spec: {', '.join(strange)} ({', '.join(ledger.subjects())})")
    asked = ledger.Asked(work=work or WORK, seed=seed, budget=budget, fresh=fresh, jobs=jobs)
    quiet = str(json) == "-"
    try:
        with _printing(0):
            found = ledger.prove(names, asked, told=(lambda _entry: None) if quiet else _print_entry)
    except (TypeError, ValueError) as error:  # a spec that Z3 cannot read
        raise _failed(str(error)) from None
    with _printing(found.exit_code):
        if json:
            _write(json, found.model_dump_json(by_alias=True, indent=1) + "\n")
        if not quiet:
            _print_ledger(found)
    raise typer.Exit(found.exit_code)


def _print_entry(entry: Entry) -> None:
    under = "" if entry.under == "design" else " (with deviations)"
    print(f"{entry.result:8} {entry.ms:7.1f} ms  {entry.spec}: {entry.step}: {entry.invariant}{under}", flush=True)


def _print_ledger(found: Ledger) -> None:
    from rich.table import Table

    told = set()
    for entry in found.obligations:
        if entry.story and "\n".join(entry.story) not in told:  # once, where it does not hold with deviations either
            told.add("\n".join(entry.story))
            print("", *entry.story, f"Again: gapless prove {entry.spec}", sep="\n")
        elif entry.result in ("refuted", "unknown") and not entry.story:
            print(f"\n{entry.spec}: {entry.step}: {entry.invariant}: {entry.result}. {entry.why}")
    table = Table(box=None, pad_edge=False)
    for name in ("spec", "obligations", "proved", "refuted", "unknown", "budget", "ms", "slowest", "definitions"):
        table.add_column(name, justify="left" if name in ("spec", "definitions") else "right")
    for spec, digest in found.digests.items():
        mine = [entry for entry in found.obligations if entry.spec == spec]
        counts = [
            sum(entry.result == result for entry in mine) for result in ("proved", "refuted", "unknown", "budget")
        ]
        ms = [entry.ms for entry in mine]
        numbers = (len(mine), *counts, round(sum(ms)), round(max(ms, default=0)))
        table.add_row(spec, *(f"{value:,}" for value in numbers), digest)
    print()
    _Console(highlight=False, width=None if sys.stdout.isatty() else 120).print(table)
    proved = sum(entry.result == "proved" for entry in found.obligations)
    print(f"\n{proved:,} of {len(found.obligations):,} obligations proved by Z3 {found.z3} in {found.seconds:.1f} s.")


@app.command()
def rules() -> None:
    """List every rule: id, sentence, what goes wrong without it, how it is established, source."""
    from gapless.traces.rules import rules as every

    with _printing(0):
        for number, rule in enumerate(every()):
            if number:
                print()
            print(f"{rule.id}\n  {rule.kind}: {rule.because}\n  otherwise: {rule.otherwise}")
            print(f"  established by: {rule.established}\n  source: {rule.source}")


@app.command()
def explore(
    specs: Annotated[
        list[str] | None, typer.Argument(help="Specs by name, such as queue; all if none is named.", show_default=False)
    ] = None,
    profile: Annotated[
        Profile | None,
        typer.Option(help="With the known deviations of a broker; without them if none is named.", show_default=False),
    ] = None,
    states: Annotated[int, typer.Option(min=1, help="Give up on a spec that has more states.")] = 1_000_000,
    graph: Annotated[
        Path | None, typer.Option(help="Draw the states: an .svg of one spec, or an .html page.", show_default=False)
    ] = None,
    json: Annotated[
        Path | None, typer.Option(help="Write what was found as JSON; - for standard output.", show_default=False)
    ] = None,
) -> None:
    """Try every step in every state within small bounds, and hold all of it against the invariants.

    The bounds are those of properties/exploration/bounds.py. Exit codes: 0 all hold, 1 one is broken, 2 wrong usage,
    3 a spec has more states than --states allows, or a step that was never possible.
    """
    from gapless.properties.exploration import drawing, summary
    from gapless.properties.exploration.bounds import NoBound, bound_of
    from gapless.properties.exploration.search import explore as run

    chosen = _chosen(specs or [])
    found = []
    try:
        if graph:
            drawing.kind(graph, len(chosen))
        for spec in chosen:
            bound = bound_of(spec, profile)
            with _exploring(spec.name) as progress:
                found.append(run(spec, bound, profile=profile, limit=states, progress=progress))
    except (NoBound, drawing.NoPicture) as error:
        raise _failed(str(error)) from None
    code = summary.exit_code(found)
    with _printing(code):
        if json:
            _write(json, summary.report(found).model_dump_json(by_alias=True, indent=1) + "\n")
        if graph:
            _write(graph, drawing.svg(found[0]) if graph.suffix == ".svg" else drawing.html(found))
        if str(json) != "-":
            _tabled(found)
            if graph:
                print(f"graph: {graph}")
    raise typer.Exit(code)


def _tabled(found: Sequence[Explored]) -> None:
    from gapless.properties.exploration import summary

    console = _Console(highlight=False, markup=False)
    console.width = max(console.width, 120)
    console.print(summary.table(found, ruled=console.is_terminal))
    for one in found:
        for lines in (summary.remarks(one), summary.story(one)):
            if lines:
                print("", *lines, sep="\n")


def _chosen(names: Sequence[str]) -> list[Spec]:
    """The specs of these names, each once; all if there is none."""
    for name in names:
        if name not in SPECS:
            raise _failed(f"there is no spec {name!r}: choose among {', '.join(SPECS)}")
    return [SPECS[name] for name in dict.fromkeys(names or SPECS)]


@contextmanager
def _exploring(name: str) -> Iterator[Callable[[int, int], None] | None]:
    """How many states are explored, on a terminal; nothing elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with console.status(f"{name} …") as status:
        yield lambda explored, known: status.update(f"{name}: {explored:,} of {known:,} states explored")


class _Console(Console):
    """A console that leaves it to `_printing` what happens when nobody reads on."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


@contextmanager
def _printing(code: int) -> Iterator[None]:
    """Print; where nobody reads on, exit with `code` all the same, and where nothing can be written, say so."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - what is left goes nowhere
        raise typer.Exit(code) from None
    except OSError as error:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
        raise _failed(f"cannot write the output ({error.strerror})") from None


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """A progress bar on a terminal, nothing elsewhere. No thread of its own: workers may be forked beside it."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    console = Console(stderr=True)
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, auto_refresh=False) as bar:
        task = bar.add_task("")

        def told(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)
            bar.refresh()

        yield told


def _write(path: Path, text: str) -> None:
    """Write a whole file or none; `-` is standard output."""
    if str(path) == "-":
        sys.stdout.write(text)
        return
    path = path.resolve()
    try:
        if path.exists() and not path.is_file():  # a device or a pipe is written to, never replaced
            path.write_text(text, encoding="utf-8")
            return
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, prefix=f".{path.name}.", delete=False, encoding="utf-8"
        ) as file:
            file.write(text)
        Path(file.name).chmod(0o644)
        Path(file.name).replace(path)
    except OSError as error:
        raise _failed(f"{path}: cannot be written ({error.strerror})") from None


def _failed(message: str) -> typer.Exit:
    typer.echo(f"gapless: {message}", err=True)
    return typer.Exit(2)


def main() -> None:
    """The `gapless` command."""
    app()
