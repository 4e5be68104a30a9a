"""A store whose process was killed: an entry that the next start rewrites may be missing."""

from pathlib import Path

from gapless import Report, check
from gapless.impl.store.store import Store
from tests.support.rocketmq.killed_store import killed

QUEUE = "consumequeue/orders/0/00000000000000000000"
RULE = "queue/no-entry-before-it-is-missing"


def without_entry(folder: Path, number: int) -> Report:
    """The verdict once an entry is zeros."""
    with (folder / QUEUE).open("r+b") as file:
        file.seek(20 * number)
        file.write(bytes(20))
    return check([folder], profile="strict", engine="local", jobs=1)


def test_an_entry_that_the_next_start_rewrites_may_be_missing(tmp_path: Path) -> None:
    killed(tmp_path)
    report = without_entry(tmp_path, 27)
    assert report.verdict == "inconclusive"
    (reason,) = report.sources[0].reasons
    assert reason.startswith(
        "entries are missing before others (orders/0 from 27 on): legal in a store that was killed"
    )
    assert [row.verdict for row in report.queues] == ["inconclusive"]
    Store.open(tmp_path).close()
    assert check([tmp_path], profile="strict", engine="local", jobs=1).verdict == "conforms"


def test_an_entry_that_no_start_rewrites_may_not(tmp_path: Path) -> None:
    killed(tmp_path)
    with (tmp_path / "checkpoint").open("r+b") as file:
        file.seek(5 * 8)
        file.write((10_000).to_bytes(8, "big"))  # as a broker from 5.4 on says that all before is in its queue
    report = without_entry(tmp_path, 2)
    assert (report.verdict, {found.rule for found in report.violations}) == ("departs", {RULE})


def test_after_a_clean_stop_none_may_be_missing(tmp_path: Path) -> None:
    killed(tmp_path)
    Store.open(tmp_path).close()
    report = without_entry(tmp_path, 27)
    assert (report.verdict, {found.rule for found in report.violations}) == ("departs", {RULE})
