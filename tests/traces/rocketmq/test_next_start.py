"""The broker's next start: whatever stops it or gets lost is a hazard, and the store conforms."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from gapless import check
from gapless.traces.report.values import Finding, Report
from tests.support.command_line import gapless
from tests.support.rocketmq.recordings import recording, recording_as_left
from tests.support.rocketmq.start_damage import ALL, OF_5, faults
from tests.support.rocketmq.store_builder import varied

LOG_FILE, QUEUE_FILE = 8_192, 200  # bytes of the files of the store that is damaged
FAULTS = {fault.label: fault for fault in faults("consumequeue/orders/0", LOG_FILE, QUEUE_FILE)}
REPORTS = {  # a store of a public report: the rule, the file, where in it, and the versions that do not start
    "topics_nul": ("config-file-or-its-backup-can-be-read", "config/topics.json", 0, ALL),
    "stray_file_in_queue": ("mapped-file-has-its-full-length", "consumequeue/orders/0/.nfs000000001", 0, OF_5),
    "timerwheel_short": ("timer-wheel-has-all-its-slots", "timerwheel", 1_000_000, OF_5),
}
LOST = "config-file-without-content-has-a-backup"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that does not tell which version wrote it."""
    store = varied(count=60).write(tmp_path_factory.mktemp("whole") / "store")
    topics = store / "config/topics.json"
    content = json.loads(topics.read_text(encoding="utf-8"))
    del content["dataVersion"]["stateVersion"]
    topics.write_text(json.dumps(content), encoding="utf-8")
    return store


def of_start(report: Report) -> list[Finding]:
    return [found for found in report.findings if found.spec == "startup"]


def described(found: Finding) -> tuple[str, str, str, int]:
    return found.severity, found.rule, found.where.file, found.where.offset


def named(versions: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(versions[:-1]), versions[-1])))


def test_a_store_that_every_broker_starts_on_has_no_hazard(whole: Path) -> None:
    report = check([whole])
    assert (report.verdict, report.hazards) == ("conforms", [])
    steps = ("open", "map_file", "read_config")
    assert all(report.coverage[f"startup.{step}"] > 0 for step in steps), report.coverage


@pytest.mark.parametrize("label", FAULTS)
def test_a_fault_is_a_hazard_where_it_lies(label: str, whole: Path, tmp_path: Path) -> None:
    fault = FAULTS[label]
    store = Path(shutil.copytree(whole, tmp_path / "store"))
    fault.plant(store)
    report = check([store])
    assert report.verdict == "conforms", report.model_dump_json(indent=1)
    assert not any("not needed" in note for note in report.sources[0].notes)
    if not fault.rule:
        assert of_start(report) == []
        return
    (found,) = of_start(report)
    assert described(found) == ("hazard", f"startup/{fault.rule}", fault.file, fault.offset)
    assert f": {named(fault.refused)} " in found.message
    story = "\n".join(found.story)
    does = "starts without the content of the file" if fault.rule == LOST else "does not start"
    assert f"Consequence: the broker {does}." in story
    assert "Remedy: " in story


def test_a_store_of_version_5_is_judged_by_its_versions(tmp_path: Path) -> None:
    """4.9.7 would not start on a folder in the log; but it will not be the next to start."""
    store = varied(count=60).write(tmp_path / "store")
    FAULTS["a folder in the log"].plant(store)
    FAULTS["an empty last file of a queue"].plant(store)
    assert not check([store]).hazards
    FAULTS["an NFS rest"].plant(store)
    (found,) = check([store]).hazards
    assert ": 5.3.3 and 5.5.0 do not start" in found.message


@pytest.mark.parametrize(
    ("setting", "value", "file", "length"),
    [
        ("mappedFileSizeCommitLog", 2 * LOG_FILE, "commitlog/00000000000000000000", LOG_FILE),
        ("mappedFileSizeConsumeQueue", QUEUE_FILE + 1, "consumequeue/%LMQ%a/0/00000000000000000000", QUEUE_FILE),
    ],
)
def test_a_setting_that_the_files_do_not_have_is_a_hazard(
    setting: str, value: int, file: str, length: int, whole: Path, tmp_path: Path
) -> None:
    """Sizes of queues are rounded up to whole entries, of 20 bytes."""
    store = Path(shutil.copytree(whole, tmp_path / "store"))
    sizes = {"mappedFileSizeCommitLog": LOG_FILE, "mappedFileSizeConsumeQueue": QUEUE_FILE - 19, setting: value}
    (tmp_path / "broker.conf").write_text("".join(f"{name}={size}\n" for name, size in sizes.items()))
    (found,) = of_start(check([tmp_path]))
    assert described(found) == ("hazard", "startup/settings-have-the-length-of-the-files", file, length)
    assert f"Remedy: set {setting}={length} before the start" in "\n".join(found.story)
    assert store.is_dir()
    sizes[setting] = length
    (tmp_path / "broker.conf").write_text("".join(f"{name}={size}\n" for name, size in sizes.items()))
    assert not check([tmp_path]).hazards


@pytest.mark.parametrize(
    ("name", "levels"),
    {"lab/delays_changed": (4, 5), "odd/settings_lowered_5.5.0": (3, 4), "odd/settings_lowered_4.9.7": (3, 4)}.items(),
)
def test_messages_of_a_level_that_settings_do_not_have_wait_for_ever(name: str, levels: tuple[int, int]) -> None:
    found = of_start(check([recording_as_left(name)]))[0]
    assert found.rule == "startup/settings-have-the-level-of-messages-that-wait"
    assert found.where.file.startswith(f"consumequeue/SCHEDULE_TOPIC_XXXX/{levels[1] - 1}/")
    assert f"level {levels[1]} wait for their time, and messageDelayLevel names {levels[0]}" in found.message
    assert f"name {levels[1]} levels or more" in "\n".join(found.story)


@pytest.mark.parametrize(
    ("name", "recorded"), [("delayOffset.json", "odd_clients"), ("consumerOffset.json", "normal_533")]
)
def test_a_file_that_a_clean_stop_writes_is_missed(name: str, recorded: str, tmp_path: Path) -> None:
    store = Path(shutil.copytree(recording(recorded), tmp_path / "store"))
    assert not check([store]).hazards
    for file in (store / "config" / name, store / "config" / f"{name}.bak"):
        file.unlink(missing_ok=True)
    (found,) = of_start(check([store]))
    assert described(found) == ("hazard", f"startup/{LOST}", f"config/{name}", 0)
    (store / "abort").touch()
    assert not of_start(check([store])), "a broker that is killed early has not written it"


@pytest.mark.parametrize("name", REPORTS)
def test_a_store_of_a_public_report_has_its_hazard_and_conforms(name: str) -> None:
    rule, file, offset, versions = REPORTS[name]
    report = check([recording_as_left(f"reports/{name}")])
    (found,) = report.hazards
    assert (report.verdict, report.exit_code) == ("conforms", 0)
    assert described(found) == ("hazard", f"startup/{rule}", file, offset)
    assert f"{named(versions)} do not start" in found.message
    assert not any("not needed" in note for note in report.sources[0].notes)


def test_a_doubled_setting_is_a_hazard() -> None:
    """After rocketmq's own check at a start; the store is whole."""
    report = check([recording_as_left("reports/queue_file_size_setting_doubled")])
    (found,) = report.hazards
    assert found.rule == "startup/settings-have-the-length-of-the-files"
    assert "mappedFileSizeConsumeQueue is 4,000" in found.message


def test_explain_shows_a_hazard_by_its_trace() -> None:
    store = recording_as_left("reports/topics_nul")
    ran = gapless("explain", store, "--trace", "start/config/topics.json")
    assert "read_config(file=BROKEN, backup=BROKEN, needed=1)" in ran.stdout
    assert "no message of" not in ran.stdout
    assert "Consequence: the broker does not start." in ran.stdout


def test_every_format_has_the_hazard(tmp_path: Path) -> None:
    formats = {"--report": "page.html", "--json": "report.json", "--sarif": "report.sarif", "--junit": "report.xml"}
    given = [part for option, name in formats.items() for part in (option, tmp_path / name)]
    ran = gapless("check", recording_as_left("reports/timerwheel_short"), "--fail-on", "hazard", *given)
    assert ran.exit_code == 1
    for name in formats.values():
        assert "all its slots have 38,707,200" in (tmp_path / name).read_text(encoding="utf-8"), name
