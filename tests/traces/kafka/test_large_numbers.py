"""Numbers too large for a kernel, such as times in picoseconds, are judged by the plain functions."""

from pathlib import Path

from gapless import check
from gapless.traces.report.values import Report
from tests.support.kafka.logs import Message, batch

TIME = 1 << 61
COUNT = 40


def judged(folder: Path, **changed: int) -> Report:
    """The report on a log of one producer; `changed`: fields of its last batch but one."""
    log = folder / "orders-0" / f"{0:020}.log"
    log.parent.mkdir(parents=True)
    fields = [{"producer": 7, "epoch": 0, "sequence": n, "time": TIME + n} for n in range(COUNT)]
    fields[-2] |= changed
    log.write_bytes(b"".join(batch(n, [Message()], **one) for n, one in enumerate(fields)))
    return check([folder], jobs=1)


def test_sound_logs_conform(tmp_path: Path) -> None:
    report = judged(tmp_path)
    assert (report.verdict, report.sources[0].records) == ("conforms", COUNT)


def test_a_departure_behind_them_is_found(tmp_path: Path) -> None:
    assert [one.rule for one in judged(tmp_path, sequence=0).findings] == ["producer/sequence-is-given-once"]


def test_damage_behind_them_is_found(tmp_path: Path) -> None:
    assert judged(tmp_path, crc=0).verdict == "inconclusive"  # the broker may have been killed
