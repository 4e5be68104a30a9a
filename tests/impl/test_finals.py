"""The queue and properties of a final: as splitting its properties one by one gives them."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.impl.transactions.finals import final_of
from gapless.store import Refused

NAMES = [b"REAL_TOPIC", b"REAL_QID", b"__CRC32#", b"TAGS", b"REAL", b"XREAL_TOPIC", b"REAL_TOPICS", b""]
VALUES = [b"orders", b"3", b"", b"REAL_TOPIC", b"-1", b"x"]


def half(packed: bytes) -> Any:
    return SimpleNamespace(packed=packed, number=7)


def by_splitting(packed: bytes) -> tuple[tuple[str, int], bytes] | None:
    """Compute the final of these properties one by one; None if they do not name a queue."""
    pairs = [pair.partition(b"\x01") for pair in packed.split(b"\x02") if pair]
    target = {name: value for name, separator, value in pairs if separator}
    topic, queue = target.get(b"REAL_TOPIC", b""), target.get(b"REAL_QID", b"")
    if not topic or not queue.isdigit():
        return None
    kept = [b"".join(pair) + b"\x02" for pair in pairs if not (pair[1] and pair[0] in NAMES[:3])]
    return (topic.decode(), int(queue)), b"".join(kept)


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(VALUES))), st.booleans())
def test_it_is_what_one_finds_who_looks_at_each(pairs: list[tuple[bytes, bytes]], is_ended: bool) -> None:  # noqa: FBT001 - drawn
    given_pairs = [*pairs, (b"REAL_TOPIC", b"orders"), (b"REAL_QID", b"4")]
    for some in (pairs, given_pairs, given_pairs[::-1]):
        packed = b"\x02".join(b"\x01".join(pair) for pair in some) + b"\x02" * is_ended
        expected = by_splitting(packed)
        if expected is None:
            with pytest.raises(Refused, match="half 7: it does not say for which queue it is"):
                final_of(half(packed))
        else:
            assert final_of(half(packed)) == expected
