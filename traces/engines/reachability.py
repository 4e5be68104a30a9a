"""The test that a Spark master on the network can be reached: Spark itself would wait for minutes."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from functools import partial

from gapless.traces.problems import UsageError, shown
from gapless.traces.processes.timeouts import answer_within

WAITS = 5.0  # seconds for the name lookup and answer of a machine, before it counts as unreachable
PORTS = {"spark": 7077, "sc": 15002}  # where none is named


def reach(master: str) -> None:
    """Check that a master on the network can be reached, or one of several. Raises UsageError."""
    match = re.match(r"(spark|sc)://([^/;]+)", master)
    if not match:
        return
    places = [_place(place, PORTS[match[1]]) for place in match[2].split(",")]
    try:
        why = answer_within(partial(_silence, places), WAITS)  # to look a name up may take long, too
    except TimeoutError:
        why = "timed out"
    if why:
        raise UsageError(f"no server answers at {shown(master)}: {shown(why)}")


def _silence(places: Sequence[tuple[str, int]]) -> str:
    """Return why the last of the places cannot be reached; empty if one of them can."""
    why = ""
    for place in places:
        try:
            with socket.create_connection(place, timeout=WAITS):
                return ""
        except OSError as error:
            why = error.strerror or str(error)
        except (UnicodeError, OverflowError) as error:  # no name of a machine, no number of a port
            why = str(error)
    return why


def _place(text: str, port: int) -> tuple[str, int]:
    """Parse a machine and its port: `host:port`, `[address]:port`, or without the port."""
    match = re.fullmatch(r"\[?(.+?)\]?(?::(\d+))?", text)
    return (match[1], int(match[2] or port)) if match else (text, port)
