"""Compiles every kernel once, so that the first check need not: `python -m gapless.traces.warm`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from gapless.traces.check import check
from gapless.traces.rocketmq.layout import CLIENT_LOG, HALF_TOPIC
from gapless.traces.schema import Event, write_events
from gapless.traces.specs import SPECS


def main() -> None:
    """Check an empty log, what one client asked of it, and events in several stretches: every kernel is compiled."""
    with tempfile.TemporaryDirectory() as folder:
        events = Path(folder) / "events.ndjson"
        write_events(events, [_opened("queue", "a"), _opened("queue", "b"), *(_opened(name, name) for name in SPECS)])
        check([events], split=1)
        log = Path(folder) / "store" / "commitlog"
        log.mkdir(parents=True)
        (log.parent / "consumequeue" / HALF_TOPIC / "0").mkdir(parents=True)
        (log / f"{0:020d}").write_bytes(bytes(4096))
        asked = Path(folder) / CLIENT_LOG
        asked.write_text('{"op":"end","uniq":"A","half":0,"phys":0,"decision":"commit","result":"ok"}\n')
        check([folder])


def _opened(spec: str, trace: str) -> Event:
    args = dict.fromkeys(SPECS[spec].parameters["open"], 0)
    return Event(source="", spec=spec, trace=trace, position=0, action="open", args=args)


if __name__ == "__main__":
    main()
