"""Prints the page of situations: `python -m gapless.traces.sources.rocketmq.blame`; with `--write`, into docs/."""

import sys
from pathlib import Path

from gapless.traces.sources.rocketmq.blame.page import made

PAGE = Path(__file__).resolve().parents[4] / "docs" / "blame.md"

if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(made(), encoding="utf-8")
    else:
        sys.stdout.write(made())
