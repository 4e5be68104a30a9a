"""`--redact`: no name is in anything that is written, and all else is as it was."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless import check
from gapless.traces.report import redaction
from gapless.traces.report.outputs import github, junit, sarif
from gapless.traces.report.outputs.text import as_text
from gapless.traces.report.page.html import html
from gapless.traces.report.redaction import OURS, Redactor, redacted, vocabulary
from gapless.traces.report.threshold import Threshold
from gapless.traces.report.values import Report
from tests.support import pulsar_recordings
from tests.support.command_line import gapless
from tests.support.event_files import append, index, opened, write
from tests.support.rocketmq.damage import Pick
from tests.support.rocketmq.recordings import copy_of
from tests.support.rocketmq.transaction_damage import final_of_another_body

LOOSE = "SELECT-rows_of.a@view"
"""A name that stands nowhere but in prose."""


def written(report: Report) -> dict[str, str]:
    """Everything that can be written of a report, by what it is."""
    threshold = Threshold()
    return {
        "text": as_text(report, verbose=True),
        "json": report.as_json(),
        "page": html(report),
        "junit": junit.junit(report, threshold),
        "sarif": sarif.sarif(report, threshold),
        "annotations": github.commands(report, threshold),
        "summary": github.summary(report, threshold),
    }


def left_in(report: Report, names: set[str]) -> list[tuple[str, str]]:
    """The names that are still in something, and in what."""
    texts = {what: set(re.findall(r"[\w@%.#-]*\w", text)) for what, text in written(report).items()}
    return [
        (name, what)
        for name in sorted(names)
        for what, words in texts.items()
        if (name in words if re.fullmatch(r"[\w@%.-]*\w", name) else name in written(report)[what])
    ]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a transaction that departs, and its client log next to it."""
    found = copy_of("immunity", tmp_path_factory.mktemp("store"), client=True)
    final_of_another_body(found, Pick("any", "3"))
    return found.parent


def names_of(store: Path) -> set[str]:
    """Return the names in a store, from its own files: topics, groups, keys, client ids."""
    found: set[str] = set()
    offsets = (store / "store/config/consumerOffset.json").read_text(encoding="utf-8")
    for topic, group in re.findall(r'"([^"]+)@([^"]+)":', offsets):
        found |= {topic, group}
    found |= {path.name for path in (store / "store/consumequeue").iterdir()}
    for line in (store / "client.ndjson").read_text(encoding="utf-8").splitlines():
        fields = json.loads(line)
        found |= {
            value for key, value in fields.items() if isinstance(value, str) and key in ("topic", "group", "key", "c")
        }
    return {
        name for name in found if not OURS.fullmatch(name) and not name.isdigit() and name.lower() not in vocabulary()
    }


def test_no_name_of_a_store_is_left_anywhere(store: Path) -> None:
    plain = check([store])
    names = names_of(store)
    assert {"orders", "payments", "audit-log"} <= names
    keys = {finding.trace for finding in plain.findings if "/" not in finding.trace}
    for some in (names, keys):
        assert {what for _, what in left_in(plain, some)} >= {"text", "json", "page"}, "they are there to be found"
    assert left_in(redacted(plain, "a key"), names | keys) == []


def test_verdicts_and_counts_are_as_they_were(store: Path) -> None:
    plain = check([store])
    hidden = redacted(plain, "a key")
    for same in ("verdict", "exit_code", "counts", "coverage", "anomalies", "findings_total", "profile"):
        assert getattr(hidden, same) == getattr(plain, same), same
    for before, after in zip(plain.findings, hidden.findings, strict=True):
        for same in ("rule", "position", "needs", "otherwise", "here", "count"):
            assert getattr(after, same) == getattr(before, same), same
        assert after.where.offset == before.where.offset
        assert len(after.story) == len(before.story)
    assert Report.model_validate_json(hidden.as_json()) == hidden


def test_prose_is_left_as_it_is(store: Path) -> None:
    """A redacted report can be read: only names are gone."""
    output = as_text(redacted(check([store]), "a key"))
    assert 'commit breaks the rule "the final carries what its half carries".' in output
    assert "commit is not idempotent; apache/rocketmq#5574" in output
    assert re.search(r"transaction n[0-9a-f]{10} departs at commitlog/0{20}\+995879\.", output)


def test_a_coordinator_keeps_what_is_no_secret() -> None:
    plain = check([pulsar_recordings.recording("broker-restart-batch")])
    hidden = redacted(plain, "a key")
    assert hidden.findings[0].trace == "tc0"
    assert hidden.findings[0].story[:-1] == plain.findings[0].story[:-1]
    assert hidden.not_exercised == plain.not_exercised


def test_the_same_name_has_the_same_hash_under_the_same_key(store: Path) -> None:
    plain = check([store])
    assert redacted(plain, "one") == redacted(plain, "one")
    one, other = redacted(plain, "one"), redacted(plain, "other")
    assert one.violations[-1].story != other.violations[-1].story
    assert len({row.topic for row in one.queues}) == len({row.topic for row in plain.queues})
    assert redaction.new_key() != redaction.new_key()


ODD = ("orders/1", "客戶/7", "a key with spaces", "message/3", "100045", "17", "broker-a:10911", "10.1.2.3", "number")


@pytest.mark.parametrize("name", ODD)
def test_a_name_of_any_kind_is_replaced(tmp_path: Path, name: str) -> None:
    path = tmp_path / "secret-file.ndjson"
    more: dict[str, Any] = {"trace": name}
    write(path, [opened(**more), append(0, 0, **more), index(0, 9, **more)])
    plain = check([path])
    hidden = redacted(plain, "a key")
    (finding,) = hidden.findings
    first = name.partition("/")[0].partition(":")[0]
    for text in (
        finding.trace,
        finding.message,
        finding.story[0],
        finding.story[-1],
        *finding.traces,
        finding.where.file,
    ):
        assert not re.search(rf"(?<![\w/]){re.escape(first)}(?![\w,])", text), text
        assert "secret" not in text
    assert finding.story[2:4] == plain.findings[0].story[2:4], "steps are numbers"
    assert finding.trace in finding.story[0]
    assert finding.trace in finding.message
    assert first in finding.trace or "n" in finding.trace


def test_a_name_that_only_prose_knows_is_replaced() -> None:
    """It need not be a known name: it is no word of ours."""
    plain = check([])
    report = plain.model_copy(update={"not_exercised": [f"log.flush: topic {LOOSE} was made anew, on 10.9.8.7:10911"]})
    (line,) = redacted(report, "a key").not_exercised
    assert re.fullmatch(r"log\.flush: topic n[0-9a-f]{10} was made anew, on n[0-9a-f]{10}:10911", line)


def test_the_words_of_a_spec_of_yours_stay() -> None:
    examples = Path(__file__).parents[2] / "examples"
    plain = check([examples / "lease.ndjson"], specs=[examples / "lease.py"])
    (finding,) = plain.violations
    (hidden,) = redacted(plain, "a key").violations
    about = finding.message.removeprefix(finding.trace)
    assert hidden.message == f"{hidden.trace}{about}"
    assert hidden.trace != finding.trace


WORDS = st.text(st.characters(categories=["L", "N"], include_characters="-_.@/ %"), min_size=1, max_size=20)


@given(WORDS, st.text(max_size=5))
def test_no_word_but_ours_and_numbers_survives(name: str, key: str) -> None:
    output = Redactor(check([]), key).text(f"the queue {name} departs")
    for word in re.findall(r"\w+", output):
        known = word.lower().removesuffix("s") in vocabulary() or word.lower() in vocabulary()
        assert known or re.fullmatch(r"n[0-9a-f]{10}|[\d_]+(ms|s|h|d|kB)?|tc\d+", word) or _of_a_longer(word, name), (
            output
        )


def _of_a_longer(word: str, name: str) -> bool:
    """True if a word is a part of a longer word of ours, such as broker.conf."""
    return any(
        word in token and token.lower().removesuffix("s") in vocabulary() for token in redaction.TOKEN.findall(name)
    )


def all_output(*arguments: str | Path) -> Iterator[str]:
    found = gapless(*arguments)
    yield found.stdout
    yield found.stderr


def test_the_command_writes_no_name(tmp_path: Path) -> None:
    path, page, story = tmp_path / "hush.ndjson", tmp_path / "page.html", tmp_path / "found.story"
    more: dict[str, Any] = {"trace": "payroll/1"}
    write(path, [opened(**more), append(0, 0, **more), index(0, 9, **more)])
    out = list(
        all_output("check", path, "--redact", "--redact-key", "k", "--report", page, "--json", tmp_path / "x.json")
    )
    again = list(all_output("explain", path, "--trace", "payroll/1", "--redact", "--redact-key", "k", "--save", story))
    files = [file.read_text(encoding="utf-8") for file in (page, tmp_path / "x.json", story)]
    for text in (*out, *again, *files):
        assert "payroll" not in text
        assert "hush" not in text
    name = re.search(r"queue (n[0-9a-f]{10}/1) departs", out[0])
    assert name
    assert name[1] in again[0], "the key is the same"
    assert gapless("check", path, "--redact").stdout != gapless("check", path, "--redact").stdout, "a new key each time"


def test_what_needs_names_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.ndjson"
    write(path, [opened(), append(0, 0), index(0, 0)])
    found = gapless("check", path, "--redact", "--verdicts", tmp_path / "table")
    assert (found.exit_code, "names every trace" in found.stderr) == (2, True)
    (tmp_path / "known.json").write_text('{"schema": 1, "findings": []}', encoding="utf-8")
    found = gapless("check", path, "--redact", "--baseline", tmp_path / "known.json")
    assert (found.exit_code, "give --redact-key" in found.stderr) == (2, True)
    found = gapless("check", path, "--redact", "--redact-key", "k", "--baseline", tmp_path / "known.json")
    assert found.exit_code == 0


def test_what_the_page_tells_to_run_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`docs/ci.md`, from its own text."""
    page = (Path(__file__).parents[2] / "docs/ci.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"## Without names\n\n```sh\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "traces").mkdir()
    more: dict[str, Any] = {"trace": "orders/1"}
    write(tmp_path / "traces/a.ndjson", [opened(**more), append(0, 0, **more), index(0, 9, **more)])
    for line in block.splitlines():
        found = gapless(*line.split()[1:])
        assert found.exit_code == 1, "it departs"
        assert "orders" not in found.stdout
    assert "orders" not in (tmp_path / "report.html").read_text(encoding="utf-8")


FIXED = {
    "index_table": "index-rocksdb/4711",
    "timer_table": "timers-rocksdb/1700000000000/4711",
    "half_table": "rocksdbstore/4711",
    "hash_index": "index/20261124194400123",
    "timer": "timerwheel/1700000000000",
    "dledger_index": "dledger-n0/index",
    "stage": "delayed/3/4711",
    "startup": "start/timerwheel",
    "log": "commitlog",
}


def of_spec(report: Report, spec: str, trace: str) -> Report:
    """The report with one finding, of another spec and another trace."""
    expected = f"row 5 of {trace} breaks the rule; {trace.partition('/')[0]}/ holds it"
    finding = report.findings[0].model_copy(update={"spec": spec, "trace": trace, "message": expected})
    return report.model_copy(update={"findings": [finding]})


@pytest.fixture(scope="module")
def plain(store: Path) -> Report:
    return check([store])


OF_TIERED_STORAGE = [("hash_index", "tiered_index_file/1795572369621"), ("hash_index", "rmq_sys_INDEX/5892")]


@pytest.mark.parametrize(("spec", "trace"), [*FIXED.items(), *OF_TIERED_STORAGE])
def test_what_a_layout_calls_its_files_stays(plain: Report, spec: str, trace: str) -> None:
    (finding,) = redacted(of_spec(plain, spec, trace), "a key").findings
    assert finding.trace == trace
    assert finding.message == f"row 5 of {trace} breaks the rule; {trace.partition('/')[0]}/ holds it"


@pytest.mark.parametrize("trace", [t for t in FIXED.values() if "/" in t] + ["dledger-payments/index"])
def test_a_topic_that_is_called_like_a_file_of_a_layout_is_a_name(plain: Report, trace: str) -> None:
    (finding,) = redacted(of_spec(plain, "queue", trace), "a key").findings
    assert trace.partition("/")[0] not in finding.trace
    assert trace.partition("/")[0] not in finding.message


def test_a_finding_in_the_index_of_a_dledger_log_can_be_read(tmp_path: Path) -> None:
    found = copy_of("layouts/dledger_lives_5.5.0", tmp_path)
    with next((found / "dledger-n0/index").iterdir()).open("r+b") as file:
        file.seek(32 * 5 + 8)
        file.write(b"\x7f")
    (finding,) = redacted(check([found]), "a key").violations
    assert finding.trace == "dledger-n0/index"
    assert finding.where.file == "dledger-n0/index/00000000000000000000"
    assert "dledger-n0/index" in finding.story[0]


def test_a_finding_in_the_index_of_tiered_storage_names_no_topic(tmp_path: Path) -> None:
    found = copy_of("layouts/tieredindex_killed_5.3.3", tmp_path)
    with next(found.glob("tieredstore/*/*/rmq_sys_INDEX/0/INDEX/*")).open("r+b") as file:
        file.seek(28 + 8 * 40)
        file.write(b"\x7f")
    (finding,) = redacted(check([found]), "a key").violations
    assert finding.trace == "rmq_sys_INDEX/0"
    assert not re.search("orders|payments|lab", finding.model_dump_json())
