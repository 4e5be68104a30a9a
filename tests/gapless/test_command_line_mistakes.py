"""Mistakes on the command line: each is answered in one line, with what is wrong, where, and what to do.

`command_line_mistakes.txt` has each with its answer; they are run in the folder of `tests/support/mistakes.py`.
"""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from gapless.spec.catalog import SPECS
from gapless.traces.problems import os_problem
from tests.support.command_line import gapless
from tests.support.mistakes import make_folder

TABLE = Path(__file__).with_name("command_line_mistakes.txt")
COMPILING = re.compile(r"^gapless: compiling native code .*\n", re.MULTILINE)
PHRASES = re.compile(
    r"Traceback|Value error|Input should|Field required|Extra inputs|Invalid value|Usage:|pydantic|typer|<class|Errno"
)


def rows() -> list[tuple[str, str]]:
    blocks = TABLE.read_text(encoding="utf-8").strip().split("\n\n")
    pairs = (block.split("\n", 1) for block in blocks)
    return [(command.removeprefix("$ gapless").strip(), answer) for command, answer in pairs]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("mistakes")
    make_folder(made)
    return made


@pytest.fixture(autouse=True)
def _in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def test_the_table_has_a_hundred_different_mistakes() -> None:
    commands = [command for command, _ in rows()]
    assert len(set(commands)) == len(commands) >= 100


@pytest.mark.parametrize(("command", "answer"), rows())
def test_a_mistake_is_answered_in_one_line(command: str, answer: str, folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    ran = gapless(*shlex.split(command))
    shown = (
        COMPILING.sub("", ran.stderr)  # where a test before this one emptied the cache
        .strip()
        .replace(str(folder), "FOLDER")
        .replace(str(Path.home()), "HOME")
        .replace(", ".join(SPECS), "SPECS")
    )
    assert (ran.exit_code, ran.stdout, shown) == (2, "", answer)
    assert "\n" not in shown
    assert not PHRASES.search(shown)
    assert sorted(folder.rglob("*")) == before, "nothing is made"


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        (
            "check store --topic order",
            "no message of topic order in the log (did you mean orders?); topics here: ",
        ),
        ("check good.ndjson --topic TopicTst", "topic TopicTst in it (did you mean TopicTest?): nothing was checked; "),
        ("explain store --trace orders", "store: orders is a topic: name a queue of it; queues of orders: orders/1\n"),
        ("explain store --trace ordres/1", "no message of ordres/1 in the log (did you mean orders/1?)"),
        ("explain store --trace orders/7", "no message of orders/7 in the log; queues of orders: orders/1"),
        ("explain store --trace ordres/0", "no message of ordres/0 in the log (did you mean orders?)"),
        ("explain store --trace commitlogs", "no transaction commitlogs in the log (did you mean commitlog?)"),
        (
            "explain good.ndjson --trace TopicTest/4",
            "(did you mean TopicTest/3?): nothing was checked; there: Topic",
        ),
        ("check empty", "the directory is empty: nothing was checked"),
    ],
)
def test_a_name_that_is_not_in_a_recording_is_answered_with_those_that_are(command: str, hint: str) -> None:
    ran = gapless(*shlex.split(command))
    assert (ran.exit_code, hint in ran.output) == (3, True), ran.output


def test_the_reason_for_an_empty_folder_is_printed_once() -> None:
    assert gapless("check", "empty").output.count("the directory is empty") == 1


def test_a_store_that_is_named_twice_is_judged_once(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy/store").symlink_to(folder / "store")
    ran = gapless("check", "store", tmp_path / "copy", tmp_path / "copy/store")
    assert (ran.exit_code, ran.stdout.count("RocketMQ store")) == (0, 1)
    assert f"note: named twice, also as {tmp_path}/copy/store: judged once" in ran.stdout


def test_a_packed_file_of_the_log_is_to_be_unpacked_first(tmp_path: Path, folder: Path) -> None:
    """A log without it would be accused of a hole, or seem to end early."""
    store = shutil.copytree(folder / "store", tmp_path / "store")
    (first, *_) = sorted((store / "commitlog").iterdir())
    packed = first.rename(first.with_suffix(".gz"))
    ran = gapless("check", store)
    advice = f"a compressed file of the log, which has no other copy of it: unpack it first: gunzip {packed}"
    assert (ran.exit_code, ran.stderr) == (2, f"gapless: {packed}: {advice}\n")


def test_one_wrong_path_among_others_is_a_part_of_the_report() -> None:
    ran = gapless("check", "good.ndjson", "store/commitlog")
    assert ran.exit_code == 2
    assert "reason: this is the commitlog/ of a RocketMQ store: name the folder above, store\n" in ran.stdout


@pytest.mark.parametrize(
    ("names", "first"),
    [
        (["queue/entry-points-at-its-message"], "queue/entry-points-at-its-message"),
        (["queue/entry-points"], "queue/entry-points-at-its-message"),
        (["points-at-its-message"], "queue/entry-points-at-its-message"),
        (["queue"], "queue/"),
    ],
)
def test_rules_are_selected_by_id_by_spec_and_by_a_part(names: list[str], first: str) -> None:
    ran = gapless("rules", *names)
    assert ran.exit_code == 0
    listed = [line for line in ran.stdout.splitlines() if line and not line.startswith(" ")]
    assert listed[0].startswith(first)
    assert all(any(name in rule for name in names) for rule in listed)


def test_settings_of_a_broker_are_used_where_they_name_the_store(folder: Path) -> None:
    (folder / "own/conf").mkdir(parents=True)
    (folder / "own/store").symlink_to(folder / "store")
    settings = folder / "own/conf/broker.conf"
    settings.write_text(f"storePathRootDir={folder}/own/store\n")
    assert "settings from conf/broker.conf" in gapless("check", "own").stdout
    settings.write_text("storePathRootDir=/data/store\n")
    assert "conf/broker.conf next to the store is not used" in gapless("check", "own").stdout


def test_a_missing_permission_names_the_owner_and_the_way_out(folder: Path) -> None:
    problem = os_problem(PermissionError(13, "Permission denied", str(folder / "store")))
    assert problem.startswith(f"{folder}/store: Permission denied for user ")
    assert problem.endswith(", its owner, or permit this user to read it")


def test_a_value_from_pyproject_is_blamed_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.gapless]\nprofile = "strikt"\n')
    monkeypatch.chdir(tmp_path)
    named = "strict, rocketmq, pulsar, kafka or kafka-3.5"
    said = f"gapless check: --profile strikt: expected {named} (did you mean strict?) "
    assert gapless("check", "x").stderr == f"{said}(from [tool.gapless] in pyproject.toml)\n"
