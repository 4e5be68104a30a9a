"""Files of events say where their events come from, and which profile judges them."""

from pathlib import Path

import pytest
from pyarrow import parquet

from gapless.traces.check import check
from gapless.traces.events import reading, schema
from gapless.traces.events.event import Origin
from gapless.traces.events.lines import ndjson
from gapless.traces.problems import Unreadable
from tests.support.command_line import gapless
from tests.support.event_files import QUEUE, append, opened
from tests.support.pulsar_recordings import recording
from tests.support.rocketmq.recordings import recording as store

FORMS = (".ndjson", ".parquet")
RECREATED = [opened(), append(0, 0), append(0, 340)]  # a topic was recreated: RocketMQ does, and the design does not


def written(path: Path, origin: Origin | None = None) -> Path:
    schema.write_events(path, [tell(at) for at, tell in enumerate(RECREATED)], origin=origin)
    return path


@pytest.mark.parametrize("suffix", FORMS)
def test_a_file_is_judged_by_the_profile_that_it_names_and_the_user_wins(tmp_path: Path, suffix: str) -> None:
    path = written(tmp_path / f"stated{suffix}", Origin("a-broker", "rocketmq"))
    unsaid = written(tmp_path / f"unsaid{suffix}")
    assert (reading.origin(path), reading.origin(unsaid)) == (Origin("a-broker", "rocketmq"), Origin())
    found = check(path)
    assert (found.verdict, found.profile, found.anomalies) == (
        "conforms",
        "rocketmq",
        {"append_to_a_queue_made_anew": 1},
    )
    assert found.sources[0].notes == ["its events come from: a-broker"]
    found = check(path, profile="strict")
    assert (found.verdict, found.profile) == ("departs", "strict")
    assert found.findings[0].story[-1].endswith("--profile strict")
    found = check(unsaid)
    assert (found.verdict, found.profile) == ("departs", "strict")
    assert found.findings[0].story[-1].endswith("--trace TopicTest/3")
    assert found.sources[0].notes == ["it does not say by which profile it is to be judged: judged by strict"]
    assert check(unsaid, profile="rocketmq").verdict == "conforms"


def test_each_of_many_files_is_judged_by_its_own_profile(tmp_path: Path) -> None:
    one = written(tmp_path / "one.ndjson", Origin(profile="rocketmq"))
    other = written(tmp_path / "other.parquet", Origin(profile="strict"))
    found = check([one, other, written(tmp_path / "old.ndjson")], jobs=2, split=1)
    assert [source.verdict for source in found.sources] == ["conforms", "departs", "departs"]
    assert found.profile == "rocketmq, strict"
    assert check([one, other], profile="strict").profile == "strict"


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ('"kind":"a","profile":"nats"', "line 1: no such profile: nats, expected one of strict, rocketmq, pulsar"),
        ('"profile":7', "line 1: profile is 7, expected a name, or no profile at all"),
        ('"profile":""', 'line 1: profile is "", expected a name'),
        ('"kind":["a"]', 'line 1: kind is ["a"], expected a name'),
        ('"profil":"strict"', "line 1: the header has a key 'profil', expected schema, version, and perhaps kind"),
    ],
)
def test_a_header_that_is_not_ours_is_reported(tmp_path: Path, header: str, says: str) -> None:
    path = written(tmp_path / "events.ndjson")
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text(lines[0].replace("}", f",{header}}}") + "".join(lines[1:]), encoding="utf-8")
    found = check(path)
    assert (found.verdict, found.profile) == ("unreadable", "strict")
    assert f"{path}, {says}" in found.sources[0].reasons[0]
    if "nats" in header:
        assert check(path, profile="rocketmq").verdict == "conforms"


def test_null_and_absent_are_equivalent_in_a_header(tmp_path: Path) -> None:
    path = written(tmp_path / "events.ndjson")
    text = path.read_text(encoding="utf-8").replace('"version":1', '"version":1,"kind":null,"profile":null')
    path.write_text(text, encoding="utf-8")
    assert (reading.origin(path), check(path).verdict) == (Origin(), "departs")


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("gapless-events-profile", "nats", "its metadata: no such profile: nats"),
        ("gapless-events-profil", "strict", "its metadata has a key gapless-events-profil, expected gapless-events,"),
    ],
)
def test_metadata_that_is_not_ours_is_reported(tmp_path: Path, key: str, value: str, says: str) -> None:
    path = written(tmp_path / "events.parquet")
    table = parquet.read_table(path)
    metadata = {"gapless-events": "1", key: value, "pandas": "{}"}
    parquet.write_table(table.replace_schema_metadata(metadata), path)
    (reason,) = check(path).sources[0].reasons
    assert str(path) in reason
    assert says in reason


@pytest.mark.parametrize("suffix", FORMS)
def test_what_a_source_exports_says_so(tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"events{suffix}"
    assert gapless("trace", store("v4"), "--out", out).stdout.endswith(f"events in {out}\n")
    assert reading.origin(out) == Origin("rocketmq-store", "rocketmq")
    assert (check(out).verdict, check(out).profile) == ("conforms", "rocketmq")
    gapless("trace", recording("coord-timeouts"), "--out", out)
    assert reading.origin(out) == Origin("pulsar-recording", "pulsar")
    assert check(out).anomalies == check(recording("coord-timeouts")).anomalies


def test_nothing_is_stated_of_files_that_are_written_later(tmp_path: Path) -> None:
    gapless("trace", recording("coord-timeouts"), "--out", tmp_path / "events.parquet")
    assert reading.origin(written(tmp_path / "later.parquet")) == Origin()


@pytest.mark.parametrize(("one", "other"), [FORMS, FORMS[::-1]])
@pytest.mark.parametrize("origin", [Origin(), Origin("a-broker", "pulsar"), Origin(profile="nats")])
def test_a_file_of_events_becomes_the_other_form_and_back(tmp_path: Path, one: str, other: str, origin: Origin) -> None:
    first, second, third = (tmp_path / f"{name}{suffix}" for name, suffix in zip("abc", (one, other, one), strict=True))
    schema.write_events(first, [tell(at) for at, tell in enumerate(QUEUE)], origin=origin)
    assert gapless("trace", first, "--out", second).stdout == f"{len(QUEUE)} events in {second}\n"
    assert gapless("trace", second, "--out", third).exit_code == 0
    assert reading.origin(second) == reading.origin(third) == origin
    assert list(reading.read_events(third)) == list(reading.read_events(first))
    if one == ".ndjson":
        assert third.read_bytes() == first.read_bytes()


def test_a_file_of_events_may_be_written_over_itself(tmp_path: Path) -> None:
    path = written(tmp_path / "events.ndjson", Origin(profile="rocketmq"))
    before = path.read_bytes()
    assert gapless("trace", path, "--out", path).exit_code == 0
    assert path.read_bytes() == before


def test_a_torn_file_of_events_becomes_nothing(tmp_path: Path) -> None:
    path, out = written(tmp_path / "events.ndjson"), tmp_path / "out.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    result = gapless("trace", path, "--out", out)
    assert (result.exit_code, out.exists()) == (2, False)
    assert f"{path}, line 4: the last line is cut off" in result.stderr


def test_a_header_alone_says_it_too(tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    path.write_text('{"schema":"gapless-events","version":2,"profile":"strict"}\n', encoding="utf-8")
    with pytest.raises(Unreadable, match="of version 2, expected 1"):
        reading.origin(path)
    assert ndjson.HEADER == {"schema": "gapless-events", "version": 1}
