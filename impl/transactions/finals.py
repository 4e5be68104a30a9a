"""What becomes of a half: the message that a commit makes of it, and why it can be decided no more."""

from __future__ import annotations

from gapless.impl.records.errors import Refused
from gapless.impl.records.record import CHECKSUM, Record
from gapless.impl.transactions import names
from gapless.impl.transactions.half_table import COMMITTED, PARKED, ROLLED_BACK


def final_of(record: Record) -> tuple[tuple[str, int], bytes]:
    """Where the final of a half is to go, and its properties: those of the half, but for that."""
    kept, target = [], {}
    for pair in record.packed.split(b"\x02"):
        name, _, value = pair.partition(b"\x01")
        if name in _TARGETS:
            target[name] = value.decode()
        elif pair and name != _SEAL:
            kept.append(pair + b"\x02")
    topic, queue = (target.get(name, "") for name in _TARGETS)
    if not topic or not queue.isdecimal():
        raise Refused(f"half {record.number}: it does not say for which queue it is")
    return (topic, int(queue)), b"".join(kept)


_TARGETS = names.REAL_TOPIC.encode(), names.REAL_QUEUE.encode()
_SEAL = CHECKSUM.encode()


def refusal(number: int, status: int) -> Refused:
    """Why the half can be decided no more, or not this way."""
    what = {
        COMMITTED: "was committed: consumers may have seen it",
        ROLLED_BACK: "was rolled back",
        PARKED: f"was set aside, in {names.PARKED_TOPIC}: its producer never answered",
    }.get(status, "has expired")
    return Refused(f"half {number} {what}; it cannot be decided any more, or not otherwise")
