"""Data that a broker keeps elsewhere is named, and all else of the store is judged."""

import pytest

from gapless import check
from tests.support.rocketmq.recordings import recording_as_left

NAMED = {  # records, and words of the note
    "poprocks_5.5.0": (373, "kvStore/ is not judged: what pop consumers were handed, in RocksDB"),
}


@pytest.mark.parametrize("name", NAMED)
def test_what_is_not_judged_is_named_and_all_else_conforms(name: str) -> None:
    records, words = NAMED[name]
    report = check([recording_as_left(f"layouts/{name}")])
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    (source,) = report.sources
    assert source.records == records
    assert any(words in note for note in source.notes)


def test_a_table_of_halves_that_is_empty_needs_no_word() -> None:
    """With `transRocksDBEnable` alone, halves go where they always went."""
    report = check([recording_as_left("layouts/transrocks_5.5.0")])
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    (source,) = report.sources
    assert source.records == 350
    assert not any("rocksdbstore" in note for note in source.notes)
