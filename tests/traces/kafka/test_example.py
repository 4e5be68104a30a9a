"""The data directories in `examples/kafka`: one as a broker left it, one with a batch that was written twice."""

from pathlib import Path

from gapless import check
from tests.support.command_line import ROOT
from tests.support.kafka.batches import Batch, walk

EXAMPLE = ROOT / "examples/kafka"
LOG = "orders-0/00000000000000000000.log"
REPLACED = 3133  # byte


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_example_conforms_and_its_damaged_copy_has_one_violation() -> None:
    assert check([EXAMPLE / "whole"], jobs=1).verdict == "conforms"
    report = check([EXAMPLE / "damaged"], jobs=1)
    (finding,) = report.violations
    assert (report.verdict, finding.rule, finding.trace) == ("departs", "producer/sequence-is-given-once", "orders-0/2")
    assert finding.where is not None
    assert (finding.where.file, finding.where.offset) == (LOG, REPLACED)


def test_they_differ_by_one_batch_as_their_page_says() -> None:
    whole, damaged = files(EXAMPLE / "whole"), files(EXAMPLE / "damaged")
    assert {name for name in whole | damaged if whole.get(name) != damaged.get(name)} == {LOG}
    before, after = walk(EXAMPLE / "whole" / LOG).batches, walk(EXAMPLE / "damaged" / LOG).batches
    ((old, new, copied),) = [
        (old, new, after[n - 1]) for n, (old, new) in enumerate(zip(before, after, strict=True)) if old != new
    ]
    assert (old.position, old.size, old.base) == (new.position, new.size, new.base) == (REPLACED, 333, 38)
    assert all(one.is_sound for one in after)
    assert moved(new, copied) == copied


def moved(batch: Batch, to: Batch) -> Batch:
    """The batch as it would be at the place of another one."""
    data = to.data[:8] + batch.data[8:]
    return batch._replace(position=to.position, base=to.base, data=data)
