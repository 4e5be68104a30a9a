"""A report of a store with a lost or damaged file: its cause comes first, its numbers agree, and it says what to do."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from markupsafe import Markup

from gapless import Report, check
from gapless.traces.report.page.html import html
from gapless.traces.report.redaction import redacted
from tests.support.command_line import gapless
from tests.support.rocketmq.recordings import copy_of
from tests.support.rocketmq.stores import read_log

FILE = 1 << 20
SECOND, LAST = f"{FILE:020}", f"{3 * FILE:020}"


def log_file(store: Path, name: str = SECOND) -> Path:
    return store / "commitlog" / name


def words_of(page: str) -> str:
    """The text of a page, one space between words."""
    return Markup(page.partition("</style>")[2]).striptags()  # noqa: S704 - it is only compared


def checked(store: Path) -> Report:
    return check([store], client=store.parent / "client.ndjson")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of four log files, with the log of its clients."""
    copied = copy_of("normal", tmp_path, client=True)
    return copied if copied.name == "store" else copied / "store"


def remove_file(path: Path) -> None:
    path.unlink()


def fill_with_garbage(path: Path) -> None:
    path.write_bytes(bytes(range(1, 256)) * (FILE // 255) + bytes(FILE % 255))


@pytest.mark.parametrize(
    ("damage", "name", "says"),
    [
        (remove_file, SECOND, f"log file {SECOND} is missing: no record follows at {FILE}"),
        (fill_with_garbage, SECOND, f"log file {SECOND} has no record that can be read"),
        (remove_file, LAST, f"log file {LAST} is missing: the log ends at {3 * FILE}"),
    ],
)
def test_what_explains_the_others_comes_first(
    damage: Callable[[Path], None], name: str, says: str, store: Path
) -> None:
    damage(log_file(store, name))
    report = checked(store)
    first, *others = report.violations
    later = sum(finding.count for finding in others)
    assert first.spec == "log"
    assert others
    assert first.summary.startswith(says)
    assert first.summary.endswith(f"; this may explain the {later:,} violations below")
    page = words_of(html(report))
    assert f"Log file {name} " in page, "a number that begins with zeros is the name of a file"


def test_cards_and_table_of_queues_agree(store: Path) -> None:
    """With a log file gone, no queue is said to conform of which a part is gone."""
    log_file(store).unlink()
    report = checked(store)
    missing = sum(row.missing for row in report.queues)
    verdicts = [row.verdict for row in report.queues]
    assert missing == 4897 - report.sources[0].records
    assert all(row.verdict != "conforms" for row in report.queues if row.missing)
    page = words_of(html(report))
    broken, partly = verdicts.count("departs"), verdicts.count("inconclusive")
    assert broken
    assert partly
    assert f"15 queues {broken} broken, {partly} judged in part" in page
    assert f"messages in the log {missing:,} or more missing, 1.0 MiB without a record" in page
    assert "numbers whose messages may lie in damage of the log. They were not judged" in page
    (row,) = report.transactions
    accused = sum(finding.count for finding in report.violations if finding.spec == "transaction")
    assert row.outcomes["departing"] == accused, "what no finding accuses is not counted as departing"
    assert row.outcomes["not judged"]


def test_a_damaged_body_names_its_message(store: Path) -> None:
    at = next(r for r in read_log(store) if r.topic == "orders" and r.position > FILE)
    with log_file(store).open("r+b") as file:
        file.seek(at.position - FILE + 100)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 255]))
    report = checked(store)
    (finding,) = report.violations
    assert finding.rule == "log/body-has-its-checksum"
    key, chosen = finding.keys
    says = f"the body of message orders/{at.queue} number {at.number}, key {key}, keys {chosen}, stored 2026-11-21 "
    assert finding.summary.startswith(says)
    assert says in finding.message
    assert says in json.loads(report.as_json())["findings"][0]["summary"]
    hidden = redacted(report, "a key").as_json()
    assert key not in hidden
    assert chosen not in hidden
    assert "lab-a" not in hidden


def test_the_first_screen_says_what_to_do_and_whose_store_it_is(store: Path) -> None:
    shutil.rmtree(store / "consumequeue/orders/1")
    report = checked(store)
    assert report.sources[0].owner == "broker lab-a, cluster lab"
    page = words_of(html(report))
    assert "Written by broker lab-a, cluster lab" in page
    assert f"What to do now Keep a copy of {store} before anything else." in page
    assert report.violations[0].summary.startswith("all 306 entries of orders/1 are missing: its folder is not there")
    lines = str(report).splitlines()
    assert lines[lines.index("what to do now:") + 1] == f"  keep a copy of {store} before anything else"


def test_a_path_keeps_its_letters(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.truncate(log_file(store), 500_000)
    monkeypatch.chdir(store.parent)
    page = words_of(html(check(["store"])))
    assert "store/commitlog/" in page
    assert "Store/commitlog/" not in page


def test_a_random_key_is_announced(store: Path) -> None:
    arguments = ("check", store, "--topic", "orders", "--redact")
    assert "give --redact-key to keep the mapping" in gapless(*arguments).stderr
    assert "--redact-key" not in gapless(*arguments, "--redact-key", "k").stderr
