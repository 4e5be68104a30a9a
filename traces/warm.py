"""Compiles every kernel once, so that the first check need not: `python -m gapless.traces.warm`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from gapless.traces.check import check
from gapless.traces.rocketmq import client


def main() -> None:
    """Check an empty log and read what one client asked: every kernel is compiled, or loaded, on the way."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "commitlog"
        log.mkdir()
        (log / f"{0:020d}").write_bytes(bytes(4096))
        check([folder])
        asked = Path(folder) / client.NAME
        asked.write_text('{"op":"end","uniq":"A","half":0,"phys":0,"decision":"commit","result":"ok"}\n')
        client.read(asked)


if __name__ == "__main__":
    main()
