"""`gapless demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gapless.commands.terminal import failed, printing


def demo(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder for the two stores and the report; made where it is missing.")
    ] = Path("gapless-demo"),
) -> None:
    """Check a real broker's store as it is, and again with one damaged queue entry. It takes some seconds.

    Leaves both stores and the report of the damaged one in DIR.
    """
    from gapless.demo.demonstration import Demonstration
    from gapless.traces.problems import UsageError

    def show(text: str) -> None:
        print(f"\n{text}\n", flush=True)

    with printing(0):
        try:
            as_expected = Demonstration(folder, show).run()
        except UsageError as error:
            raise failed(str(error)) from None
        except OSError as error:
            raise failed(f"{error.filename or folder}: {error.strerror or error}") from None
        if not as_expected:
            raise failed("the demo must find nothing in the first store and one violation in the second")
        show(f"The report as a page: {folder / 'report.html'}. Next: gapless check PATH, on a store of yours.")
