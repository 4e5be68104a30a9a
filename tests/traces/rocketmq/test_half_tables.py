"""Stores whose halves a table in RocksDB tells of: docs/rocketmq-transactions.md#half-table."""

import pytest

from gapless import check
from tests.support.rocketmq.recordings import recording_as_left

OUTCOMES = {  # as the clients tell it: commits and rollbacks that were answered, each once, and all other halves
    "halfdb_lives_5.5.0": {"committed": 114, "rolled back": 37, "undecided": 29},
    "halfdb_killed_5.5.0": {"committed": 90, "rolled back": 39, "undecided": 51},
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_transactions_are_judged_as_any_others(name: str) -> None:
    report = check([recording_as_left(f"layouts/{name}")])
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    (row,) = report.transactions
    assert row.outcomes == OUTCOMES[name]
    assert row.halves == 180
