"""Transactions that are open at the end of a log: of a compacted one, markers may be gone."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from gapless.spec.catalog import SPECS
from gapless.traces.judging import building
from gapless.traces.options import Options
from gapless.traces.sources.kafka.joining.findings import LogFindings
from gapless.traces.sources.kafka.joining.partition_judge import PartitionJudge
from gapless.traces.sources.kafka.judging.parts import PartitionTerms

ACTIVE = 100
"""The first offset of the active segment."""
NEVER = 1 << 62


def judge(*, compacted: bool, snapped: int, judged_from: int, transactions: list[int]) -> PartitionJudge:
    """A partition that was read to its end, whose producers have these open transactions."""
    terms = PartitionTerms(
        name="a-0", folder="a-0", start=0, log_start=0, compacted=compacted, checked=True, is_whole=True, recovered=0,
        epochs=None, leaders=None, judged_from=judged_from, cleaned=0, is_cleaned=False, deep=True,
    )  # fmt: skip
    found = PartitionJudge(terms, LogFindings(), Options(profile="kafka"))
    ids = np.arange(len(transactions), dtype=np.int64)
    found.producers.table.put(ids, building.states(SPECS["producer"], len(ids), transaction=np.array(transactions)))
    found.last = cast("Any", SimpleNamespace(part=SimpleNamespace(segment=SimpleNamespace(base=ACTIVE))))
    found.snapped = snapped
    return found


@pytest.mark.parametrize(
    ("compacted", "snapped", "judged_from", "undecided"),
    [
        (False, -1, 0, 7),
        (True, ACTIVE, NEVER, 7),  # the snapshot has it
        (True, 50, NEVER, 120),  # its marker may be gone
        (True, 50, 60, 80),  # nothing is gone from 60 on
    ],
)
def test_a_transaction_of_a_compacted_log_is_open_if_its_marker_cannot_be_gone(
    *, compacted: bool, snapped: int, judged_from: int, undecided: int
) -> None:
    found = judge(compacted=compacted, snapped=snapped, judged_from=judged_from, transactions=[120, 7, 80, -1])
    assert found.undecided == undecided


def test_a_producer_that_departs_leaves_no_transaction_open_for_which_the_cleaner_is_accused() -> None:
    found = judge(compacted=True, snapped=ACTIVE, judged_from=NEVER, transactions=[120, 7, 80, -1])
    found.producers.table.end(np.array([1]))
    assert found.undecided == 80
    assert found.producers.table.lost_transaction()
