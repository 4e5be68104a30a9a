"""`gapless watch`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gapless.commands.options import (
    ConfigOption,
    IgnoreOption,
    OnlyOption,
    ProfileOption,
    output_file,
)
from gapless.commands.stopping import until_a_signal
from gapless.commands.terminal import failed, printing, refuse_output, telling, write_whole

if TYPE_CHECKING:
    from gapless.traces.report.values import Finding, Report

LOOPBACK = "127.0.0.1"
DAY = 86_400.0  # seconds: who looks less often uses a scheduler, and --once


StoreArgument = Annotated[
    str,
    typer.Argument(
        metavar="STORE",
        help="The store directory of a broker, or a folder that contains it; it need not be there yet.",
        show_default=False,
    ),
]
MetricsOption = Annotated[
    str | None,
    typer.Option(
        metavar="[HOST:]PORT",
        help="Serve metrics for Prometheus there; on the loopback alone, unless a HOST is named, such as 0.0.0.0.",
        show_default=False,
    ),
]
ReportOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Keep report.html and report.json there, as of a check now: written once a minute, when something "
        "departs, and at the end.",
        file_okay=False,
        show_default=False,
    ),
]
StateOption = Annotated[
    Path | None,
    output_file("Keep the place there, and continue from it; without it, each start reads the whole log."),
]
EveryOption = Annotated[float, typer.Option(metavar="SECONDS", min=0.05, max=DAY, help="How often to look.")]
GraceOption = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        min=0.2,
        max=DAY,
        help="How long it may take to end after SIGTERM or Ctrl-C; a last report that takes longer is left out.",
    ),
]
OnceOption = Annotated[
    bool, typer.Option("--once", help="Go up to the present, report, keep the place, and exit with the verdict.")
]


def watch(
    store: StoreArgument,
    metrics: MetricsOption = None,
    report: ReportOption = None,
    state: StateOption = None,
    config: ConfigOption = None,
    profile: ProfileOption = None,
    only: OnlyOption = None,
    ignore: IgnoreOption = None,
    every: EveryOption = 0.5,
    grace: GraceOption = 1.0,
    once: OnceOption = False,  # noqa: FBT002 - a flag is what it is
) -> None:
    """Follow a RocketMQ store while its broker writes to it, and report each departure at once.

    What is new is read, and nothing else but recent entries, over and over. A message is judged once its entries are
    there; what is to be judged at the end of the log only waits for the report. The verdict is that of gapless check.
    """
    from gapless import __version__
    from gapless.traces.check import options_of
    from gapless.traces.evidence import Evidence
    from gapless.traces.problems import UsageError
    from gapless.traces.report.values import EXIT_CODES
    from gapless.traces.watch import Listeners, StoreWatch

    came: list[int] = []
    try:
        with telling(), until_a_signal(came, grace) as waits:
            _make_folder(report)
            pages = Pages(report)
            listeners = Listeners(_tell, _found, pages.write)
            watched = StoreWatch(
                store,
                listeners,
                Evidence.of(config),
                options_of(profile=profile and profile.value, only=only or (), ignore=ignore or ()),
                state=state,
                version=__version__,
                every=every,
            )
            if metrics is not None:
                _serve(metrics, watched.status, store)
            last = watched.run(waits, once=once)
    except UsageError as error:
        raise failed(str(error)) from None
    except KeyboardInterrupt:  # outside of what the watch itself breaks off, as while the store is opened
        raise typer.Exit(128 + came[0] if came else 130) from None
    if came:
        code = 128 + came[0]
    elif pages.trouble:
        _tell(pages.trouble)
        code = EXIT_CODES["unreadable"]  # as of a check whose report cannot be written
    else:
        code = last.exit_code
    _end(last, code)


def _tell(line: str) -> None:
    """Say something about the watching itself."""
    typer.echo(f"gapless: {line}", err=True)


def _found(finding: Finding) -> None:
    """Tell a departure at once: when, of which trace, and in one sentence; then its story."""
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    headline = finding.message if finding.message.startswith(finding.trace) else f"{finding.trace}: {finding.message}"
    print("\n".join(["", f"{when} {headline}", "", *finding.story, f"({finding.rule})", ""]), flush=True)


def _make_folder(folder: Path | None) -> None:
    """Make the folder of the report, in one that exists. Exits with 2 where that cannot be."""
    if folder is None:
        return
    if not folder.exists():
        refuse_output(folder, "--report")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise failed(f"--report {folder}: no folder can be made there ({error.strerror})") from None


class Pages:
    """The whole report in a folder, each file whole or as it was before; trouble is reported once."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.trouble = ""

    def write(self, report: Report) -> None:
        """Write it; where that cannot be, the next one is tried again."""
        if self.folder is None:
            return
        from gapless.traces.report.page.html import html

        trouble = ""
        for name, text in (("report.html", html(report)), ("report.json", report.as_json())):
            try:
                write_whole(self.folder / name, text)
            except OSError as error:
                trouble = f"{self.folder / name}: cannot be written ({error.strerror})"
        if trouble and trouble != self.trouble:
            _tell(f"{trouble}; tried again")
        self.trouble = trouble


def _serve(where: str, status: object, store: str) -> None:
    """Serve metrics, on the loopback where no host is named. Exits with 2 where that cannot be."""
    from gapless.metrics import serve_metrics

    host, _, port = where.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise failed(f"--metrics {where}: expected PORT or HOST:PORT, such as 9464 or 0.0.0.0:9464")
    host = host or LOOPBACK
    try:
        number = serve_metrics(status, store, host.strip("[]"), int(port))  # type: ignore[arg-type]
    except OSError as error:
        raise failed(f"--metrics {where}: cannot listen there ({error.strerror})") from None
    except UnicodeError:
        raise failed(f"--metrics {where}: cannot listen there (it is no name of a host)") from None
    _tell(f"metrics at http://{host}:{number}/metrics")


def _end(report: Report, code: int) -> None:
    """The last report, in short."""
    from gapless.commands.terminal import Terminal
    from gapless.traces.report.outputs.text import text

    with printing(code):
        text(report, Terminal(highlight=False, soft_wrap=True))
        sys.stdout.flush()
    raise typer.Exit(code)
