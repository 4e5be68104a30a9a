"""Files of events in an object store are judged like local ones; errors are reported in a sentence.

No output has the keys of the store.
"""

from __future__ import annotations

import pickle
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyarrow.fs import LocalFileSystem

from gapless import EngineFailure, UsageError, check
from gapless.traces.engines import local
from gapless.traces.events import parquet, reading
from gapless.traces.files import remote
from gapless.traces.files.remote import RemotePath, path_of, store_error, why
from gapless.traces.inputs import named
from gapless.traces.problems import Unreadable
from gapless.traces.processes import timeouts
from gapless.traces.report.formats import FORMATS
from gapless.traces.report.outputs import table_commit
from gapless.traces.report.outputs.verdict_table import TableRows
from gapless.traces.report.threshold import Threshold
from gapless.traces.sources.event_files.file import EventFile
from gapless.traces.spark.data_sources import GaplessEvents
from tests.support.command_line import ROOT, gapless
from tests.support.event_files import ODD, cut, mixed_traces, table_in, write
from tests.support.night import NIGHT
from tests.support.object_store import KEY, SECRET, environment, object_store

pytestmark = pytest.mark.xdist_group("remote")  # one worker, so that one store is started

FIRST = "000-000000.parquet"
NAMES = ("a.ndjson", "b.parquet", "c.ndjson.gz", "d.ndjson.zst")


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that is served as a bucket of that name."""
    folder = tmp_path_factory.mktemp("store") / "bucket"
    events = mixed_traces([*range(len(ODD))] * 4, mingled=3)
    for name in NAMES:
        path = folder / "traces" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, events)
        if path.suffix == ".parquet":
            cut(path, 20)
    shutil.copytree(folder / "traces", folder / "day=1")
    for name in ("_SUCCESS", "day=1/_SUCCESS", "table/_temporary/0/a.ndjson", "table/_SUCCESS"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    for hour in range(3):
        (folder / f"table/date=2026-11-27/hour={hour}").mkdir(parents=True)
        shutil.copy(folder / "traces" / NAMES[hour], folder / f"table/date=2026-11-27/hour={hour}")
    for number in range(9):
        (folder / "small" / f"number={number}").mkdir(parents=True)
        shutil.copy(folder / "traces" / NAMES[2 * (number % 2)], folder / "small" / f"number={number}")
    shutil.copy(ROOT / "examples/lease.ndjson", folder)
    shutil.copytree(ROOT / "examples/kafka/whole", folder / "kafka")
    (folder / "broker" / "commitlog").mkdir(parents=True)
    (folder / "broker" / "commitlog" / "00000000000000000000").write_bytes(bytes(100))
    return folder


@pytest.fixture(scope="module")
def served(bucket: Path) -> Iterator[dict[str, str]]:
    """The environment in which the store is found."""
    with object_store(bucket.parent) as found:
        yield found


@pytest.fixture
def keys(served: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """This process knows the store, and its keys."""
    known(served, monkeypatch)


@pytest.fixture
def writing(keys: None, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 - they are needed
    """Like `keys`. This store refuses marks of empty folders, and is asked for each once, and not again and again.

    It is asked one question at a time: rclone forgets some of several files that are removed at once.
    """
    monkeypatch.setattr(remote, "ATTEMPTS", (1, 1))
    monkeypatch.setattr(timeouts, "AT_ONCE", 1)


def known(given: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    remote._file_system.cache_clear()


def without_source(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "source": None} for row in rows]


def exit_and_output(*arguments: object) -> tuple[int, str]:
    """The exit code and all output, which has no keys."""
    found = gapless(*arguments)
    assert KEY not in found.output
    assert SECRET not in found.output
    return found.exit_code, found.output


# -- what is judged ------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("name", [*(f"traces/{name}" for name in NAMES), "small"])
def test_reports_are_those_of_the_same_file_on_a_disk(name: str, bucket: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def written(path: str) -> list[str]:
        report = check(path, split=None if path.endswith("small") else 2000, jobs=1)
        undated = [source.model_copy(update={"newest": None}) for source in report.sources]  # unknown of an object
        report = report.model_copy(update={"seconds": 0.0, "sources": undated})
        pages = [form.written(report, Threshold(frozenset({"violation"}), {})) for form in FORMATS]
        texts = [report.model_dump_json(), str(report), *pages]
        return [re.sub("[0-9a-f]{32}", "", page) for page in texts]  # fingerprints are of the path, too

    monkeypatch.chdir(bucket)
    there = written(f"s3://bucket/{name}")
    assert '"departs"' in there[0]
    assert [page.replace("s3://bucket/", "") for page in there] == written(name)


@pytest.mark.usefixtures("keys")
def test_folders_and_patterns_are_those_of_a_disk(bucket: Path) -> None:
    for asked in (
        "traces",
        "day=*",
        "table",
        "table/date=*/*",
        "traces/*.ndjson",
        "**/*.ndjson*",
        "day=*/?.ndjson",
        "*/*.gz",
        "**/traces/[ab].*",
    ):
        here = [str(one.path) for one in named(bucket / asked) if one.source]
        there = [str(one.path) for one in named(path_of(f"s3a://bucket/{asked}")) if one.source]
        assert here
        assert there == [path.replace(str(bucket), "s3a://bucket") for path in here], asked


@pytest.mark.usefixtures("keys")
def test_the_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "traces/README.md").read_text(encoding="utf-8")
    (command,) = [line for line in page.splitlines() if line.startswith("gapless check s3://")]
    shutil.copy(ROOT / "examples/lease.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    code, output = exit_and_output(*shlex.split(command)[1:])
    assert (code, "s3://bucket/lease.ndjson: event trace" in output) == (1, True)


@pytest.mark.usefixtures("keys")
def test_a_trace_is_explained_and_written_here(tmp_path: Path) -> None:
    code, output = exit_and_output("explain", "s3://bucket/traces/b.parquet", "--trace", "T/1")
    assert (code, "the entry points at its message" in output) == (1, True)
    assert exit_and_output("trace", "s3://bucket/traces/a.ndjson", "--out", tmp_path / "out.parquet")[0] == 0
    assert check(tmp_path / "out.parquet").verdict == "departs"


@pytest.mark.usefixtures("keys")
def test_a_data_source_of_spark_reads_it_by_parts(bucket: Path) -> None:
    def rows(path: str) -> list[Any]:
        source: Any = GaplessEvents({"path": path, "split": "1"})
        reader = source.reader(source.schema())
        return [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]

    assert rows("s3://bucket/traces/b.parquet") == rows(f"{bucket}/traces/b.parquet")


@pytest.mark.usefixtures("keys")
def test_a_part_of_a_file_is_read_alone() -> None:
    """Arrow asks for the bytes of a row group; lines are read a block at a time."""
    for name in ("a.ndjson", "b.parquet"):
        path = path_of(f"s3://bucket/traces/{name}")
        parts = reading.stretches(path, 1 if name == "b.parquet" else 2000)
        assert len(parts) > 3
        alone = [row for batch in reading.read(path, parts[2]) for row in batch.to_pylist()]
        every = [row for batch in reading.read(path) for row in batch.to_pylist()]
        assert 0 < len(alone) < len(every) / 2
        assert any(every[at : at + len(alone)] == alone for at in range(len(every)))


@pytest.mark.usefixtures("keys")
def test_workers_are_not_forked_from_a_process_that_has_spoken_to_a_store() -> None:
    assert check("s3://bucket/traces/a.ndjson", jobs=1).verdict == "departs"
    assert local._context().get_start_method() == "spawn"
    if NIGHT:
        assert check("s3://bucket/traces/a.ndjson", jobs=2, split=5000).verdict == "departs"


@pytest.mark.usefixtures("writing")
@pytest.mark.skipif(not NIGHT, reason="Spark takes its time to start")
@pytest.mark.xdist_group("spark")
def test_workers_of_spark_read_and_write_it_themselves(bucket: Path) -> None:
    (bucket / "here").mkdir()
    for name in ("a.ndjson", "b.parquet"):
        here, there = (
            check(
                f"{where}/traces/{name}",
                engine="spark",
                master="local[2]",
                split=2000,
                verdicts=f"{where}/{way}/{name}",
            )
            for way, where in (("here", bucket), ("there", "s3://bucket"))
        )
        assert without_source(table_in(bucket / "here" / name)) == without_source(table_in(bucket / "there" / name))
        assert there.counts == here.counts
        assert [found.story[:-1] for found in there.findings] == [found.story[:-1] for found in here.findings]


@pytest.mark.usefixtures("writing")
@pytest.mark.skipif(not NIGHT, reason="as above")
@pytest.mark.xdist_group("spark")
def test_workers_that_may_not_write_there_are_known_before_any_work(
    bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EventFile, "task", None)
    wrong = {"spark.executorEnv.AWS_SECRET_ACCESS_KEY": "wrong"}
    for path, lack in ((bucket / "traces/a.ndjson", "written to"), ("s3://bucket/traces/a.ndjson", "read")):
        with pytest.raises(EngineFailure, match=rf"workers lack something: .* cannot be {lack} \(access is denied"):
            check(path, engine="spark", master="local[2]", verdicts="s3://bucket/refused", conf=wrong)
    assert not list(bucket.glob("refused/**/*.parquet"))


# -- what goes wrong -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("s3://bucket/none.ndjson", "no such file or directory"),
        ("s3://bucket/none/*.ndjson", "no such file or directory"),
        ("s3://none/a.ndjson", "there is no s3://none"),
        ("s3://none/traces/", "there is no s3://none"),
        ("s3://none/*.parquet", "there is no s3://none"),
        ("s3://bucket/broker", "a broker's own directory or recording is read from a disk: copy it to one"),
        ("s3://bucket/kafka", "a broker's own directory or recording is read from a disk: copy it to one"),
        ("s3://bucket/kafka/orders-0", "a broker's own directory or recording is read from a disk: copy it to one"),
        ("hdfs://nowhere/a.ndjson", "Hadoop's libraries are not found: set JAVA_HOME, HADOOP_HOME and CLASSPATH"),
    ],
)
def test_what_is_not_there_is_unreadable(address: str, reason: str) -> None:
    code, output = exit_and_output("check", address)
    assert code == 2
    assert [line for line in output.splitlines() if line.startswith("gapless: ") and reason in line], output


@pytest.mark.parametrize("address", ["s3://bucket/traces/a.ndjson", "s3://bucket/traces/", "s3://bucket/traces/*"])
@pytest.mark.parametrize(
    ("key", "secret", "reason"),
    [
        ("", "", "access is denied: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"),
        (KEY, "wrong", "access is denied: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"),
        (KEY, SECRET, "no server answers there"),
    ],
)
def test_who_is_refused_or_finds_no_server_is_reported_so(
    address: str, key: str, secret: str, reason: str, served: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = "http://127.0.0.1:1" if secret == SECRET else served["AWS_ENDPOINT_URL"]
    known(environment(endpoint, key, secret), monkeypatch)
    code, output = exit_and_output("check", address)
    assert (code, output.splitlines()) == (2, [f"gapless: {address.rstrip('/')}: {reason}"])


def test_a_store_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "WAITS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        known(environment(f"http://127.0.0.1:{silent.getsockname()[1]}", KEY, SECRET), monkeypatch)
        code, output = exit_and_output("check", "s3://bucket/a.ndjson")
    assert (code, "no answer within 1 seconds" in output) == (2, True)


@pytest.mark.parametrize(
    "address",
    [
        f"s3://{KEY}:{SECRET}@bucket/a.ndjson",
        f"s3://{KEY}@bucket/a.ndjson",
        f"s3://bucket/a.ndjson?secret_key={SECRET}",
        f"hdfs://{KEY}:{SECRET}@host/a.ndjson",
        f"abfs://container:{SECRET}@account.dfs.core.windows.net/a.ndjson",
        f"abfs://container@account.dfs.core.windows.net/a.ndjson?sv=2024&sig={SECRET}",
        f"https://host/a.ndjson?X-Amz-Signature={SECRET}",
    ],
)
def test_an_address_with_credentials_is_refused_and_not_repeated(address: str) -> None:
    for command in (("check", address), ("explain", address, "--trace", "T"), ("trace", address, "--out", "a.ndjson")):
        code, output = exit_and_output(*command)
        assert (code, len(output.splitlines())) == (2, 1)
        assert output.startswith("gapless: ")


def test_what_a_store_says_is_repeated_without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AZURE_STORAGE_KEY", KEY)
    assert why(OSError(f"odd: {KEY} and {SECRET}, odd"), "s3") == "odd: … and …, odd"
    cut_off = OSError("AWS Error NETWORK_CONNECTION during GetObject operation: curlCode: 56")
    path = path_of("s3://bucket/a.parquet")
    assert store_error(cut_off, path) == "no server answers there"
    assert store_error(OSError("Invalid: the page is torn"), path) == ""
    sentence = r"^s3://bucket/a.parquet: cannot be read \(no server answers there\)$"
    with pytest.raises(Unreadable, match=sentence), parquet._explained(path):
        raise cut_off


# -- what is written -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("writing")
def test_a_table_of_verdicts_is_written_where_its_address_says(bucket: Path, tmp_path: Path) -> None:
    here, there = tmp_path / "table", bucket / "tables" / "1"
    names = [bucket / "traces" / name for name in NAMES]
    assert exit_and_output("check", *names, "--verdicts", here)[0] == 1
    code, output = exit_and_output("check", *names, "--verdicts", "s3://bucket/tables/1")
    assert (code, output.splitlines()[-1]) == (1, "verdicts: s3://bucket/tables/1")
    assert table_in(there) == table_in(here)
    assert [path.name for path in sorted(there.rglob("*"))] == [path.name for path in sorted(here.iterdir())]
    code, output = exit_and_output("check", names[0], "--verdicts", "s3://bucket/tables/1")
    refused = "a table of verdicts is there already: name another, or replace it with --verdicts-mode overwrite"
    assert (code, output) == (2, f"gapless: s3://bucket/tables/1: {refused}\n")
    (there / "notes.txt").touch()
    with pytest.raises(UsageError, match=r"not empty: it has notes\.txt"):
        check(names[0], verdicts="s3://bucket/tables/1", verdicts_mode="overwrite")
    (there / "notes.txt").unlink()
    (there / "_temporary").mkdir()  # of a run that was killed
    check(names[1], verdicts="s3://bucket/tables/1", verdicts_mode="overwrite")
    check(names[1], verdicts=here, verdicts_mode="overwrite")
    assert table_in(there) == table_in(here)


@pytest.mark.usefixtures("writing")
def test_a_table_that_is_not_whole_has_no_files(bucket: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query would see a file at its place, though nothing says that the others are there."""
    place, before = "s3://bucket/tables/2", [path for path in sorted(bucket.rglob("*")) if path.is_file()]
    events = bucket / "traces" / "a.ndjson"
    publish = RemotePath.publish

    def fails(path: RemotePath, target: RemotePath) -> None:
        if target.name == "001-000000.parquet":
            assert sorted(found.name for found in events.parents[1].glob("tables/2/*.parquet")) in ([], [FIRST])
            raise OSError(5, "no more")
        publish(path, target)

    with monkeypatch.context() as broken:
        broken.setattr(RemotePath, "publish", fails)
        with pytest.raises(UsageError, match=r"tables/2: verdicts cannot be written there \(no more\)"):
            check([events, events], verdicts=place)
    with monkeypatch.context() as broken:
        broken.setattr(EventFile, "finish", interrupted)
        assert check([events], verdicts=place).interrupted
    with monkeypatch.context() as broken:
        broken.setattr(TableRows, "count", lambda _: 1)
        with pytest.raises(UsageError, match="tables/2: not all verdicts can be read"):
            check([events], verdicts=place)
    assert [path for path in sorted(bucket.rglob("*")) if path.is_file()] == before


def test_a_store_that_shows_files_early_is_given_none_before_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hadoop does, and copies nothing by itself: files are written under another name, and get their own."""

    class Early(LocalFileSystem):
        def open_output_stream(self, path: str, *_: Any, **__: Any) -> Any:
            assert path.endswith(".tmp")
            return super().open_output_stream(path)

        def copy_file(self, *_: Any) -> None:
            raise AssertionError

    monkeypatch.setattr(remote, "_file_system", lambda *_: (Early(), str(tmp_path)))
    monkeypatch.setattr(table_commit, "uuid4", lambda: SimpleNamespace(hex="run"))
    events = ROOT / "examples/lease.ndjson"
    for mode in ("error", "overwrite"):
        (tmp_path / "v" / "_temporary" / "run").mkdir(parents=True)  # which Hadoop makes by itself
        check(events, specs=[ROOT / "examples/lease.py"], verdicts="hdfs://host/v", verdicts_mode=mode)
        assert sorted(path.name for path in (tmp_path / "v").iterdir()) == [FIRST, "_SUCCESS"]
    check(events, specs=[ROOT / "examples/lease.py"], verdicts=tmp_path / "here")
    assert table_in(tmp_path / "v") == table_in(tmp_path / "here") != []


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_place_that_takes_no_table_is_refused_before_anything_is_judged(
    served: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EventFile, "finish", None)
    known(served, monkeypatch)
    for address, complaint in (
        ("s3://none/v", "s3://none/v: verdicts cannot be written there (there is no such bucket)"),
        ("s3://bucket", "s3://bucket: the verdicts go into a folder of their own: name one in it"),
        ("s3://bucket/lease.ndjson", "s3://bucket/lease.ndjson: not a directory; the verdicts go into one"),
        ("ftp://bucket/v", "ftp://: nothing is read there, only at s3://"),
    ):
        code, output = exit_and_output("check", ROOT / "examples/lease.ndjson", "--verdicts", address)
        assert (code, len(output.splitlines())) == (2, 1)
        assert output.startswith(f"gapless: {complaint}")
    known(environment(served["AWS_ENDPOINT_URL"], KEY, "wrong"), monkeypatch)
    _, output = exit_and_output("check", ROOT / "examples/lease.ndjson", "--verdicts", "s3://bucket/v")
    assert output.startswith("gapless: s3://bucket/v: verdicts cannot be written there (access is denied: set AWS_")
    known({**served, "AWS_REQUEST_CHECKSUM_CALCULATION": "when_supported"}, monkeypatch)  # the default of AWS
    _, output = exit_and_output("check", ROOT / "examples/lease.ndjson", "--verdicts", "s3://bucket/v")
    assert "(the store does not take requests with checksums: set AWS_REQUEST_CHECKSUM_CALCULATION=when_req" in output


@pytest.mark.usefixtures("writing")
def test_the_query_of_the_page_runs(bucket: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs/data.md").read_text(encoding="utf-8")
    (example,) = [part.split("```")[0] for part in page.split("```python\n")[1:] if "s3://bucket/verdicts" in part]
    (command,) = [line for line in page.splitlines() if line.startswith("gapless check 's3://bucket/")]
    (tmp_path / "owners.csv").write_text("trace,owner\nT/1,payments\nT/2,shipping\n")
    monkeypatch.chdir(tmp_path)
    (bucket / "recordings").mkdir()
    shutil.copy(bucket / "traces" / "b.parquet", bucket / "recordings")
    for more in ([], ["--verdicts-mode", "overwrite"]):
        assert exit_and_output(*shlex.split(command)[1:], *more)[0] == 1
    ran = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, check=True)
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in ran.stdout.splitlines() if "│" in line]
    assert [rows[0], *rows[2:]] == [
        ["owner", "trace", "rule", "position"],
        ["payments", "T/1", "queue/entry-points-at-its-message", "7"],
        ["shipping", "T/2", "queue/numbers-of-a-queue-follow-one-another", "5"],
    ]


# -- addresses -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["s3://bucket/a b/c.ndjson", "abfs://c@a.dfs.core.windows.net/x", "hdfs:///x/y"])
def test_an_address_is_a_path_like_others(address: str) -> None:
    path = path_of(address)
    assert isinstance(path, RemotePath)
    assert str(path) == str(path.absolute()) == str(path_of(path)) == address
    assert pickle.loads(pickle.dumps(path)) == path  # noqa: S301 - our own
    assert str(path / "z.parquet") == f"{address}/z.parquet"
    assert not isinstance(path_of("here/s3:/x"), RemotePath)
    assert path_of("file:///here/x") == Path("/here/x")


def test_the_endpoint_is_the_one_that_is_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "config"
    config.write_text("[default]\nendpoint_url = http://one\n[profile two]\nendpoint_url = http://two\n")
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    assert remote._endpoint() == "http://one"
    monkeypatch.setenv("AWS_PROFILE", "two")
    assert remote._endpoint() == "http://two"
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://three")
    assert remote._endpoint() == "http://three"
    config.write_text("no such form")
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    assert remote._endpoint() == ""


def test_an_unknown_address_is_refused() -> None:
    with pytest.raises(UsageError, match="ftp://: nothing is read there, only at s3://"):
        check("ftp://host/a.ndjson")
