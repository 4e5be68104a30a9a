"""Compiles every kernel once, so that the first check need not: `python -m gapless.traces.warm`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from gapless.traces.check import check
from gapless.traces.rocketmq.layout import CLIENT_LOG


def main() -> None:
    """Check an empty log, and what one client asked of it: every kernel is compiled, or loaded, on the way."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "store" / "commitlog"
        log.mkdir(parents=True)
        (log / f"{0:020d}").write_bytes(bytes(4096))
        asked = Path(folder) / CLIENT_LOG
        asked.write_text('{"op":"end","uniq":"A","half":0,"phys":0,"decision":"commit","result":"ok"}\n')
        check([folder])


if __name__ == "__main__":
    main()
