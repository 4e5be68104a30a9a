"""The end of a half: the message that a commit makes of it, and the reasons to refuse a decision."""

from __future__ import annotations

from gapless.impl.records.errors import Refused
from gapless.impl.records.record import CHECKSUM, Record
from gapless.impl.transactions import names
from gapless.impl.transactions.half_table import COMMITTED, PARKED, ROLLED_BACK


def final_of(record: Record) -> tuple[tuple[str, int], bytes]:
    """The place of a half's final, and its properties: those of the half, but for that."""
    kept, topic = _without(b"\x02%b\x02" % record.packed.strip(b"\x02"), _REAL_TOPIC)
    kept, queue = _without(kept, _REAL_QUEUE)
    kept, _ = _without(kept, _SEAL)
    if not topic or not queue.isdigit():
        raise Refused(f"half {record.number}: it does not say for which queue it is")
    return (topic.decode(), int(queue)), kept[1:]


def _without(properties: bytes, name: bytes) -> tuple[bytes, bytes]:
    """Properties without one of them, and what it was; where a record has two of a name, the last counts.

    `properties`: with a separator before the first and behind the last · `name`: between separators, as it lies there.
    """
    value = b""
    while (at := properties.find(name)) >= 0:
        end = properties.index(b"\x02", at + 1)
        value = properties[at + len(name) : end]
        properties = properties[:at] + properties[end:]
    return properties, value


_REAL_TOPIC, _REAL_QUEUE, _SEAL = (
    b"\x02%b\x01" % name.encode() for name in (names.REAL_TOPIC, names.REAL_QUEUE, CHECKSUM)
)


def refusal(number: int, status: int) -> Refused:
    """The reason why the half can be decided no more, or not this way."""
    what = {
        COMMITTED: "was committed: consumers may have seen it",
        ROLLED_BACK: "was rolled back",
        PARKED: f"was set aside, in {names.PARKED_TOPIC}: its producer never answered",
    }.get(status, "has expired")
    return Refused(f"half {number} {what}; it cannot be decided any more, or not otherwise")
