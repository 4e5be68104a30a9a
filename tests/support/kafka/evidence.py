"""Evidence of transactions in data directories, and the same with less of it."""

import dataclasses
import random
from functools import cache
from pathlib import Path

import numpy as np

from gapless.traces.evidence import Evidence
from gapless.traces.options import Options
from gapless.traces.sources.kafka.check import LogCheck
from gapless.traces.sources.kafka.joining.findings import LogFindings
from gapless.traces.sources.kafka.judging import offset_piece
from gapless.traces.sources.kafka.judging.table_piece import joined
from gapless.traces.sources.kafka.judging.transaction_items import TransactionItems, together
from gapless.traces.sources.kafka.transactions.gathering import PartitionCopy, TransactionGatherer

OPTIONS = Options(profile="kafka")


@cache
def gathered(directory: Path) -> tuple[PartitionCopy, ...]:
    """The evidence in a data directory; never change it."""
    made = LogCheck(directory, directory, OPTIONS, Evidence())
    for bundle in made.splits:
        made.take(made.judge_bundle(bundle))
    made.close()
    return tuple(made.transactions.copies)


def judged(copies: list[PartitionCopy]) -> LogFindings:
    """The findings about some evidence."""
    found = LogFindings()
    gatherer = TransactionGatherer(found, OPTIONS)
    gatherer.copies = copies
    gatherer.judged()
    return found


def less(copies: tuple[PartitionCopy, ...], chance: random.Random) -> list[PartitionCopy]:
    """The same with less of it: each partition loses its begin, its end, or rows that a later one replaced."""
    left, right, cleaned = (chance.random() < 1 / 2 for _ in range(3))
    return [_less(copy, chance, left=left, right=right, cleaned=cleaned) for copy in copies]


def _less(copy: PartitionCopy, chance: random.Random, *, left: bool, right: bool, cleaned: bool) -> PartitionCopy:
    terms, directory = copy.placed.terms, copy.placed.directory
    if right:  # then it is a copy of a running broker
        terms, directory = terms._replace(is_whole=False), directory._replace(is_stopped=False)
    rows, items, end, offsets = copy.rows, copy.items, copy.end, copy.offsets
    if rows:
        piece = joined(rows)
        count = len(piece.rows.id)
        count = chance.randint(0, count) if right else count
        point = chance.randint(0, count) if cleaned else 0
        last = {key: row for row, key in enumerate(piece.rows.id[:point].tolist())}
        kept = np.array([*sorted(last.values()), *range(point, count)], np.int64)
        rows = [piece._replace(rows=piece.rows.of(kept))]
    elif items:
        found = together(items)
        if right and chance.random() < 2 / 3:
            end = chance.randint(terms.start, end)
            found = found.of(np.flatnonzero(found.last < end))
        if left and chance.random() < 2 / 3:
            terms = terms._replace(start=chance.randint(terms.start, max(terms.start, end)))
        items = [found]
        if offsets:
            read = offset_piece.joined(offsets)
            kept = np.flatnonzero((read.offsets.at >= terms.start) & (read.offsets.at < end))
            offsets = [read._replace(offsets=read.offsets.of(kept))]
            items = [found.of(np.flatnonzero(found.first >= terms.start))]
    placed = copy.placed._replace(terms=terms, directory=directory)
    return dataclasses.replace(copy, placed=placed, rows=rows, items=items, offsets=offsets, end=end)


def changed(copies: tuple[PartitionCopy, ...], which: int, items: TransactionItems) -> list[PartitionCopy]:
    """The same with other items in one partition."""
    return [dataclasses.replace(copy, items=[items]) if number == which else copy for number, copy in enumerate(copies)]
