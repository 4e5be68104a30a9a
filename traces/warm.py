"""Compiles every kernel once, so that the first check need not: `python -m gapless.traces.warm`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from gapless.traces.check import check


def main() -> None:
    """Check an empty log: every kernel is compiled, or loaded, on the way."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "commitlog"
        log.mkdir()
        (log / f"{0:020d}").write_bytes(bytes(4096))
        check([folder])


if __name__ == "__main__":
    main()
