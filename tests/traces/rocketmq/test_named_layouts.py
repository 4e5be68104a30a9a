"""What a broker keeps where gapless does not look: it is named, and all else of the store is judged."""

import pytest

from gapless import check
from tests.support.rocketmq.recordings import recording_as_left

NAMED = {  # records, and words of the note
    "compacted_5.5.0": (537, "compaction/ is not judged: compacted topics"),
    "transrocks_5.5.0": (350, "rocksdbstore/ is not judged: half messages, timers and the index"),
    "timerrocks_5.5.0": (278, "timers may be in rocksdbstore/ too (timerRocksDBEnable), where they are not judged"),
}


@pytest.mark.parametrize("name", NAMED)
def test_what_is_not_judged_is_named_and_all_else_conforms(name: str) -> None:
    records, words = NAMED[name]
    report = check([recording_as_left(f"layouts/{name}")])
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    (source,) = report.sources
    assert source.records == records
    assert any(words in note for note in source.notes)
