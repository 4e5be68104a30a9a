"""Messages as objects: what columns have of each becomes a `Record`, without a Python call for each.

The interpreter lock is held. Whatever Python refuses, as memory may run out, leaves nothing behind.
"""

from __future__ import annotations

from typing import Any

from gapless.impl.records.record import Bytes, Ints
from gapless.native import BYTES, I64, INTS, function
from gapless.native import intrinsics as o
from gapless.native.intrinsics import address_of

FIELDS = 6  # of a record: number, position, body, store time, rest, tag


@function(keeps_lock=True, kinds=(I64, I64, INTS, INTS, INTS, BYTES, INTS, BYTES, INTS))
def objects_of(
    kind: int, tags: int, numbers: Ints, positions: Ints, times: Ints, bodies: Bytes, body_ends: Ints, rests: Bytes,
    rest_ends: Ints,
) -> Any:  # fmt: skip
    """A list of all messages, each as an object of a subclass of tuples; something else where memory runs out.

    `kind`, `tags`: the addresses of that class, and of a list of the tags; the others as in `MessageColumns`.
    """
    made, count = o.new_list(len(numbers)), len(numbers)
    done = made != 0
    for i in range(count):
        if done:
            item = o.new_object(kind, FIELDS)
            body = o.new_bytes(address_of(bodies) + body_ends[i], body_ends[i + 1] - body_ends[i])
            rest = o.new_bytes(address_of(rests) + rest_ends[i], rest_ends[i + 1] - rest_ends[i])
            number, position, time = o.new_integer(numbers[i]), o.new_integer(positions[i]), o.new_integer(times[i])
            done = item != 0 and body != 0 and rest != 0 and number != 0 and position != 0 and time != 0
            if done:
                tag = o.list_item(tags, i)
                o.keep(tag)
                o.put_in_tuple(item, 0, number)
                o.put_in_tuple(item, 1, position)
                o.put_in_tuple(item, 2, body)
                o.put_in_tuple(item, 3, time)
                o.put_in_tuple(item, 4, rest)
                o.put_in_tuple(item, 5, tag)
                o.put_in_list(made, i, item)
            else:
                for part in (item, body, rest, number, position, time):
                    o.let_go(part)
    if done:
        return o.handed_over(made)
    o.clear_error()
    o.let_go(made)
    return o.handed_over(o.new_bytes(0, 0))
