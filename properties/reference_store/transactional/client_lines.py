"""The client log of a walk's producers: their requests and the answers (traces/README.md).

An answer counts as given once what it says is on disk: the producers of a walk hear of it then. What is lost before was
never answered, so its line says `unknown`, as every line does whose request a crash has cut off. Who asks again for
what was decided is given the answer of before, and that is a line of its own.
"""

from __future__ import annotations

import zlib
from typing import Any

from gapless.impl.records.record import Record
from gapless.properties.reference_store.transactional.models import key_of, times_of
from gapless.spec.transaction import Phase

DECISIONS = {Phase.COMMITTED: "commit", Phase.ROLLED_BACK: "rollback"}


class ClientLines:
    """The lines so far. A line with an answer that no producer heard yet waits in `_unreported`."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self._unreported: list[dict[str, Any]] = []

    def sends(self, key: str, topic: str, queue: int, body: bytes) -> dict[str, Any]:
        """A producer begins a half."""
        line = {"op": "half", "topic": topic, "queue": queue, "uniq": key, "len": len(body), "crc": zlib.crc32(body)}
        return self._asks(line)

    def decides(self, half: Record, decision: Phase, *, from_check: bool) -> dict[str, Any]:
        """A producer decides a half; whichever version it names, the newest is meant: this one."""
        named = {"uniq": key_of(half), "half": half.number, "phys": half.position}
        return self._asks({"op": "end", **named, "decision": DECISIONS[decision], "from_check": from_check})

    def is_asked(self, version: Record) -> None:
        """A producer is asked back."""
        named = {"uniq": key_of(version), "half": version.number, "phys": version.position}
        self.lines.append({"op": "check", **named, "times": str(times_of(version))})

    def _asks(self, line: dict[str, Any]) -> dict[str, Any]:
        line["result"] = "unknown"
        self.lines.append(line)
        return line

    def answered(self, line: dict[str, Any], **place: int) -> None:
        """It is done, with this place; the producer hears so once it is on disk."""
        self._unreported.append(line)
        line["place"] = place

    def refused(self, line: dict[str, Any]) -> None:
        """It was not done."""
        line["result"] = "fail"

    def tell(self) -> None:
        """All is on disk."""
        for line in self._unreported:
            line["result"] = "ok"
            line.update(line.pop("place"))
        self._unreported.clear()

    def lose(self) -> None:
        """The process is gone, and so is everybody's connection."""
        for line in self._unreported:
            del line["place"]
        self._unreported.clear()
