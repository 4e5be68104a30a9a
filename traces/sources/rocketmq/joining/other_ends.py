"""Where else a log may end, if all that departs lies behind: nobody can be accused of what comes after that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gapless.spec.catalog import rule
from gapless.traces.sources.rocketmq.joining.judged import JudgedStore
from gapless.traces.sources.rocketmq.store import file_access
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory

TAG_CODE = rule("queue/entry-has-the-tag-code-of-its-message").id
PAGE = 4096  # bytes that a disk takes whole, or not at all


class OtherEnd(NamedTuple):
    """A log position at which the log may end, and why; `doubt` says what cannot be decided then."""

    limit: int
    why: str
    doubt: str = ""


def other_ends(judged: JudgedStore) -> Iterator[OtherEnd]:
    """The ends that remain to be tried.

    Behind the last record of a clean log may lie the bytes of an old one, that no entry names. A last record may be
    torn by a crash, which may show in its tag code too, for that is read from its end. A log whose end was truncated,
    and written again up to just where an old record begins, steps back in time there and never catches up. And a power
    loss takes whichever pages of the log's end were not on disk, in any order.
    """
    last_is_refused = any(found.spec == "log" and found.position == judged.last_record for found in judged.breaches)
    if judged.store.clean and last_is_refused:
        yield OtherEnd(judged.last_record, "what lies behind is no record of it")
    torn = all(found.spec == "log" or found.rule == TAG_CODE for found in judged.breaches)
    if torn and not judged.store.clean and judged.last_record >= 0:
        yield OtherEnd(judged.last_record, "the last record is torn: the broker drops it at its next start")
    if judged.stepped_back >= 0 and judged.ends_in_the_past:
        yield OtherEnd(judged.stepped_back, "the records behind that are old bytes of an earlier truncation")
    if not judged.store.clean and not judged.store.live:
        yield from _holes(judged)


def _holes(judged: JudgedStore) -> Iterator[OtherEnd]:
    """The first record that lost a page, if the page need not have been on disk.

    Source: docs/rocketmq.md#power-loss.
    """
    refused = [
        found for found in judged.breaches if found.spec == "log" and {"position", "size"} <= found.arguments.keys()
    ]
    if not refused:
        return
    first = min(refused, key=lambda found: found.position)
    low, high = first.arguments["position"], first.arguments["position"] + first.arguments["size"]
    page = _zero_page(judged.store, low, high)
    known = judged.store.checkpoint
    after = file_access.header_of(judged.store, high)
    if page < 0 or (known is not None and after.known and after.time <= known.log):
        return
    yield OtherEnd(
        low,
        "its next start drops what lies behind",
        f"a page of zeros lies at {page:,}, where the checkpoint does not know the log to be on disk: legal after a "
        "power loss, for pages reach the disk in any order; damage otherwise",
    )


def _zero_page(store: StoreDirectory, low: int, high: int) -> int:
    """The log position of a page of zeros that has a part in `low:high`, or -1."""
    for file in store.files:
        begin, end = max(low, file.base), min(high, file.base + file.length)
        if begin >= end:
            continue
        first = (begin - file.base) // PAGE * PAGE
        size = min(-(-(end - file.base) // PAGE) * PAGE, file.length // PAGE * PAGE) - first
        if size <= 0:
            continue
        window = file_access.FileWindow(file)
        window.read(first, first + size)
        zeros = np.flatnonzero(~window.data[:size].reshape(-1, PAGE).any(axis=1))
        if len(zeros):
            return file.base + first + int(zeros[0]) * PAGE
    return -1
