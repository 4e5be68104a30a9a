"""Other positions at which a log may end: departures behind such an end accuse no broker, those before it do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gapless.spec.catalog import rule
from gapless.traces.sources.rocketmq.blame import log as situations
from gapless.traces.sources.rocketmq.blame.situation import Decision, switch
from gapless.traces.sources.rocketmq.joining.findings import StoreFindings
from gapless.traces.sources.rocketmq.store import file_access
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory
from gapless.traces.sources.rocketmq.store.files import LogFile

TAG_CODE = rule("queue/entry-has-the-tag-code-of-its-message").id
PAGE = 4096  # bytes that a disk takes whole, or not at all
AT_ONCE = 1024 * PAGE  # bytes that are looked through at once: what is left of a file may be a gigabyte
FEWEST = 64  # zeros at the end of a page that are no accident


class AlternativeEnd(NamedTuple):
    """A log position at which the log may end, and the reason; `doubt`: the open question in that case."""

    limit: int
    why: str
    doubt: str = ""


def alternative_ends(judged: StoreFindings) -> Iterator[AlternativeEnd]:
    """Yields the ends that remain to be tried.

    Behind the last record of a clean log may lie the bytes of an old one, that no entry names. A last record may be
    torn by a crash, which may show in its tag code too, for that is read from its end. A log whose end was truncated,
    and written again up to just where an old record begins, steps back in time there and never catches up. And a power
    loss takes whichever pages of the log's end were not on disk, in any order; a copy of a running broker lacks what
    was written into a file after it was read.
    """
    of_the_last = [found for found in judged.breaches if found.position >= judged.last_record >= 0]
    last_is_refused = any(found.spec == "log" and found.position == judged.last_record for found in of_the_last)
    if last_is_refused or all(found.rule == TAG_CODE for found in of_the_last):
        last = judged.cell(situations.LAST_RECORD, switch(on=not last_is_refused))
        if last.decision is Decision.NOTE:
            yield AlternativeEnd(judged.last_record, last.text)
    if judged.stepped_back >= 0 and judged.ends_in_the_past:
        yield AlternativeEnd(judged.stepped_back, "the records behind that are old bytes of an earlier truncation")
    if not judged.store.live:
        yield from _torn_by_a_power_loss(judged)


def _torn_by_a_power_loss(judged: StoreFindings) -> Iterator[AlternativeEnd]:
    """Yields the first departing record that a power loss may have torn: the next start ends the log there.

    On a store that was started again since, the records behind it still exist, and are not part of the log any more.

    Source: docs/rocketmq.md#power-loss.
    """
    store, known = judged.store, judged.store.checkpoint
    refused = [b for b in judged.breaches if b.spec == "log" and {"position", "size"} <= b.arguments.keys()]
    spans = sorted((b.arguments["position"], b.arguments["size"]) for b in refused)
    started = judged.cell(situations.END_OF_LAST_START)
    if started.decision is Decision.DOUBT and known is not None and known.recovered:
        low = known.recovered + file_access.header_of(store, known.recovered).size
        if any(position == low for position, _ in spans):
            why = "what lies behind was there when the broker started last"
            yield AlternativeEnd(low, why, situations.END_OF_LAST_START.sentence(started, {"end": low}))
        return
    for low, size in spans:
        after = file_access.header_of(store, low + size)
        on_disk = known is not None and after.known and after.time <= known.log
        torn = judged.cell(situations.TORN_PAGE, switch(on=on_disk))
        page = _torn_page(store, low, low + size) if torn.decision is Decision.DOUBT else -1
        if page >= 0:
            why, doubt = "a start drops what lies behind", situations.TORN_PAGE.sentence(torn, {"page": page})
            yield AlternativeEnd(low, why, doubt)
            return


def _torn_page(store: StoreDirectory, low: int, high: int) -> int:
    """Returns the position of a page that is zeros from a byte in `low:high` on to its end, or -1."""
    for file in store.files:
        begin, end = max(low, file.base), min(high, file.base + file.length)
        first = (begin - file.base) // PAGE * PAGE
        size = min(-(-(end - file.base) // PAGE) * PAGE, file.length // PAGE * PAGE) - first
        if begin >= end or size <= 0:
            continue
        for at in range(first, first + size, AT_ONCE):
            page = _first_torn(file, at, min(AT_ONCE, first + size - at), high)
            if page >= 0:
                return page
    return -1


def _first_torn(file: LogFile, at: int, size: int, high: int) -> int:
    """Returns the position of the first such page in `size` bytes of a file, or -1."""
    window = file_access.FileWindow(file)
    window.read(at, at + size)
    written = window.data[:size].reshape(-1, PAGE) != 0
    zeros = np.where(written.any(axis=1), written[:, ::-1].argmax(axis=1), PAGE)  # at the end of every page
    pages = file.base + at + np.arange(len(zeros)) * PAGE
    torn = np.flatnonzero((zeros >= FEWEST) & (pages + PAGE - zeros < high))
    return int(pages[torn[0]]) if len(torn) else -1


def has_new_departures(shorter: StoreFindings, judged: StoreFindings) -> bool:
    """True if the shorter judgement has a departure that the other one lacks.

    Of a rule with more departures than are reported, only their number counts. A departure that may only be an echo of
    the torn end is in the other one, too.
    """
    echoed = {found.rule for found in judged.echoes}
    counted = (judged.unreported.keys() | shorter.unreported.keys()) - echoed
    reported = {(found.rule, found.trace, found.position) for found in (*judged.breaches, *judged.echoes)}
    return any(_departures(shorter, broken) > _departures(judged, broken) for broken in counted) or any(
        found.rule not in counted and (found.rule, found.trace, found.position) not in reported
        for found in shorter.breaches
    )


def _departures(judged: StoreFindings, broken: str) -> int:
    return judged.unreported.get(broken, 0) + sum(found.rule == broken for found in judged.breaches)
