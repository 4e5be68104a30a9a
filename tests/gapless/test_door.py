"""The command line: what it prints, what it writes, and how it is interrupted."""

import json
import logging
import os
import pty
import re
import signal
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gapless import UsageError, check
from gapless import __version__ as version
from gapless.cli import app
from gapless.commands import terminal
from gapless.commands.terminal import telling
from gapless.commands.usage import GROUPS
from gapless.native.objects.cache import shown_folder
from gapless.spec.catalog import SPECS
from gapless.traces.events import reading, schema
from tests.support.command_line import ROOT, gapless, gapless_process
from tests.support.event_files import QUEUE, index
from tests.support.rocketmq.recordings import recording
from tests.support.rocketmq.store_builder import StoreBuilder
from tests.support.rocketmq.stores import Record

NO_FOLDER = "does not exist: make it first, or correct the path"
ANSI = "\x1b"


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A store with one entry that points 13 bytes too far."""
    builder = StoreBuilder()
    for number in range(40):
        builder.append(Record("orders", queue=number % 2, body=b"one of forty", properties=b"TAGS\x01a\x02"))
    store = builder.write(tmp_path / "store")
    queue = store / "consumequeue/orders/1/00000000000000000000"
    data = bytearray(queue.read_bytes())
    data[5 * 20 : 5 * 20 + 8] = (int.from_bytes(data[5 * 20 : 5 * 20 + 8], "big") + 13).to_bytes(8, "big")
    queue.write_bytes(data)
    return store


def test_help_shows_commands_by_groups_and_five_examples() -> None:
    ran = gapless("--help")
    assert ran.exit_code == 0
    places = [ran.stdout.index(text) for text in (*GROUPS, "Options:", "Examples:")]
    assert places == sorted(places)
    assert ran.stdout.count("\n  gapless ") <= 5
    grouped = [name for names in GROUPS.values() for name in names]
    listed = {command.callback.__name__ for command in app.registered_commands if command.callback} | {"serve"}
    assert set(grouped) >= listed, "each command has its group"


def test_help_fits_into_80_columns() -> None:
    """The help of every command; an example stands on a line of its own, to be copied."""
    commands = [command for command in app.registered_commands if command.callback is not None]
    names = [[command.callback.__name__] for command in commands if command.callback is not None]
    for arguments in ([], *names, ["serve"], ["serve", "coordinator"]):
        result = CliRunner().invoke(app, [*arguments, "--help"], terminal_width=80, env={"COLUMNS": "80"})
        assert result.exit_code == 0
        assert [line for line in result.stdout.splitlines() if len(line) > 80] == [], arguments
        assert [line for line in result.stdout.splitlines() if line.endswith("-")] == [], (
            f"{arguments}: a word is broken"
        )
    whole = gapless("--help").stdout
    assert (
        "\n  gapless check a/store b/store --report out.html\n    several stores, and a report for the browser\n"
        in whole
    )
    check_alone = CliRunner().invoke(app, ["check", "--help"], terminal_width=80, env={"COLUMNS": "80"}).stdout
    assert "\n  gapless check traces/ --baseline known.json\n    only what is new fails\n" in check_alone
    assert "Exit codes: 0 conforms, 1 departs, 2 unreadable or wrong usage," in check_alone
    assert "--only RULE" in check_alone, "what an option takes is described in the words of its users"


def test_the_version_is_reported() -> None:
    result = gapless("--version")
    assert (result.exit_code, result.stdout) == (0, f"gapless {version}\n")
    assert version in {tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"], "unknown"}


def test_shells_complete_commands() -> None:
    words = {"_GAPLESS_COMPLETE": "complete_bash", "COMP_WORDS": "gapless che", "COMP_CWORD": "1"}
    result = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv = ['gapless']; from gapless.cli import main; main()"],
        capture_output=True, text=True, check=True, env=os.environ | words, cwd=ROOT,
    )  # fmt: skip
    assert result.stdout.split() == ["check"]


@pytest.mark.parametrize(("changes", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_are_for_terminals_that_want_them(changes: dict[str, str], tmp_path: Path, *, coloured: bool) -> None:
    schema.write_events(tmp_path / "events.ndjson", [event(at) for at, event in enumerate(QUEUE)])
    environment = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR"}}
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "gapless", "check", str(tmp_path / "events.ndjson")]
    subprocess.run(command, stdout=follower, check=True, env=environment | {"TERM": "xterm"} | changes, cwd=ROOT)
    os.close(follower)
    output = os.read(leader, 1 << 16).decode()
    os.close(leader)
    assert "conforms" in output
    assert ("\x1b[1;32m" in output or "\x1b[32m" in output) == coloured


def test_long_work_says_in_a_pipe_how_far_it_is(damaged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every ten seconds; here at every chance."""
    gapless("check", damaged)  # compiles, if needed, and says so
    assert gapless("check", damaged).stderr == ""
    monkeypatch.setattr(terminal, "EVERY", 0.0)
    output = gapless("check", damaged, "--jobs", "1").stderr.splitlines()
    assert output
    assert all(re.fullmatch(r"gapless: .* of .* read \(\d+ %\)", line) for line in output)
    assert output[-1].endswith("(100 %)")
    recorded = gapless("record", tmp_path / "trial", "--messages", "50").stderr
    assert "gapless: 50 of 50 messages sent\n" in recorded
    explored = gapless("explore", ROOT / "examples/lease.py").stderr
    assert re.search(r"gapless: lease: .* of .* states explored\n", explored)


@pytest.mark.parametrize("suffix", [".ndjson", ".ndjson.gz", ".ndjson.zst", ".parquet"])
def test_events_may_come_from_standard_input(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"events{suffix}"
    events = [event(at) for at, event in enumerate([*QUEUE[:4], index(1, 680)])]
    schema.write_events(path, events)
    piped = CliRunner().invoke(app, ["check", "-", "--json", "-"], input=path.read_bytes(), catch_exceptions=False)
    report = json.loads(piped.stdout)
    assert (piped.exit_code, report["verdict"], report["sources"][0]["path"]) == (1, "departs", "-")
    assert report["findings"][0]["story"][-1] == "Again: gapless explain - --trace TopicTest/3"
    (of_file,) = json.loads(gapless("check", path, "--json", "-").stdout)["findings"]
    assert [line.replace(f"stdin{suffix}", path.name) for line in report["findings"][0]["story"][:-1]] == of_file[
        "story"
    ][:-1]


def test_what_is_wrong_with_standard_input_names_no_file_of_ours(tmp_path: Path) -> None:
    """It lies in a folder that goes with the process."""
    for words in (["check", "-"], ["trace", "-", "--out", str(tmp_path / "events.ndjson")]):
        ran = CliRunner().invoke(app, words, input=b"nothing\n", catch_exceptions=False)
        assert ran.exit_code == 2
        assert ": stdin.ndjson, line 1: it begins nothing, expected" in ran.output


def test_what_is_no_file_is_reported_as_what_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.ndjson")
    (tmp_path / "loop.ndjson").symlink_to("loop.ndjson")
    for name, expected in (("pipe", "a named pipe: give it to standard input"), ("loop", "a link that leads nowhere")):
        ran = gapless("check", tmp_path / f"{name}.ndjson")
        assert (ran.exit_code, f"{name}.ndjson: {expected}" in ran.stderr, ran.stdout) == (2, True, ""), ran.output


def test_a_story_of_what_cannot_be_read_is_not_reported_to_conform(tmp_path: Path) -> None:
    ran = gapless("explain", tmp_path / "none.ndjson", "--trace", "a/0", "--save", tmp_path / "a.story")
    assert (ran.exit_code, "not written, for a/0 cannot be read" in ran.stderr) == (2, True)


def test_warm_says_how_many_functions_it_compiled_and_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gapless.compiling.load_all", lambda: 88)
    ran = gapless("warm")
    assert (ran.exit_code, ran.stdout) == (0, f"88 functions are compiled, and kept in {shown_folder()} (0 s)\n")


def test_what_takes_its_time_is_reported_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("gapless")
    log.info("no listener")
    with telling():
        log.info("compiling the kernel of queue")
    log.info("no listener")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "gapless: compiling the kernel of queue\n")


def test_a_report_in_a_pipe_is_plain_and_stable(damaged: Path) -> None:
    first, second = gapless("check", damaged), gapless("check", damaged)
    assert first.exit_code == second.exit_code == 1
    assert ANSI not in first.stdout + first.stderr
    lines = [line for line in first.stdout.splitlines() if " checked in " not in line]
    assert lines == [line for line in second.stdout.splitlines() if " checked in " not in line]
    assert 'index breaks the rule "the entry points at its message".' in first.stdout


def test_json_has_the_keys_that_were_promised(damaged: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    assert gapless("check", damaged, "--json", out).exit_code == 1
    found = json.loads(out.read_text(encoding="utf-8"))
    promised = "schema verdict profile engine sources counts coverage findings findings_total seconds"
    assert set(promised.split()) <= set(found)
    assert found["schema"] == 1
    assert {"path", "kind", "bytes", "records", "clean"} <= set(found["sources"][0])
    (finding,) = found["findings"]
    promised = "rule severity spec trace source position where message needs here story"
    assert set(promised.split()) <= set(finding)
    assert finding["where"] == {"file": "consumequeue/orders/1/00000000000000000000", "offset": 100}
    assert gapless("check", damaged, "--json", "-").stdout.startswith("{")


def test_several_stores_are_one_report_and_the_worst_wins(damaged: Path) -> None:
    report = check([recording("lmq"), damaged])
    assert [source.verdict for source in report.sources] == ["conforms", "departs"]
    assert report.verdict == "departs"


def test_a_topic_and_a_rule_can_be_chosen(damaged: Path) -> None:
    rule = "queue/entry-points-at-its-message"
    assert gapless("check", damaged, "--ignore", rule).exit_code == 0
    assert gapless("check", damaged, "--only", rule).exit_code == 1
    assert gapless("check", damaged, "--only", "log").exit_code == 0
    assert gapless("check", damaged, "--topic", "orders").exit_code == 1
    nothing = gapless("check", damaged, "--topic", "unheard-of")
    assert (nothing.exit_code, "unheard-of" in nothing.stdout) == (3, True)
    wrong = gapless("check", damaged, "--only", "queue/no-such-rule")
    assert (wrong.exit_code, "gapless rules" in wrong.stderr) == (2, True)


def test_explain_tells_one_trace(damaged: Path) -> None:
    result = gapless("explain", damaged, "--trace", "orders/1")
    assert result.exit_code == 1
    assert result.stdout.startswith("queue orders/1 departs at consumequeue/orders/1/00000000000000000000+100.")
    assert gapless("explain", damaged, "--trace", "orders/0").exit_code == 0
    assert gapless("explain", damaged, "--trace", "commitlog").exit_code == 0
    assert gapless("explain", damaged, "--trace", "orders/9").exit_code == 3


@pytest.mark.parametrize("suffix", [".parquet", ".ndjson"])
def test_the_events_of_a_store_come_to_the_verdict_of_the_store(damaged: Path, tmp_path: Path, suffix: str) -> None:
    for store in (damaged, recording("midlife"), recording("lab/made_anew")):
        out = tmp_path / f"events{suffix}"
        assert gapless("trace", store, "--out", out).exit_code == 0
        whole, again = check([store]), check([out])
        assert again.verdict == whole.verdict
        assert [(f.rule, f.trace) for f in again.violations] == [(f.rule, f.trace) for f in whole.violations]
        assert again.anomalies == whole.anomalies
        assert sum(batch.num_rows for batch in reading.read(out)) == again.sources[0].records


def test_trace_writes_a_whole_file_or_none(damaged: Path, tmp_path: Path) -> None:
    assert gapless("trace", damaged, "--out", tmp_path / "events.csv").exit_code == 2
    assert gapless("trace", tmp_path / "nowhere", "--out", tmp_path / "events.parquet").exit_code == 2
    (tmp_path / "file").touch()
    assert gapless("check", damaged, "--report", tmp_path / "file/folder.html").exit_code == 2
    assert gapless("check", damaged, "--report", tmp_path / "new/folder.html").exit_code == 2
    assert not (tmp_path / "new").exists(), "no folder is made"
    elsewhere = gapless("check", damaged, "--report", "s3://bucket/page.html")
    assert elsewhere.exit_code == 2
    assert "s3://: files are written to a disk only" in elsewhere.stderr
    assert not Path("s3:").exists()
    assert not list(tmp_path.glob("*events*"))


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupt_gives_what_was_judged_so_far(jobs: int, tmp_path: Path) -> None:
    builder = StoreBuilder(log_file_size=2048)
    for _ in range(200):
        builder.append(Record("orders", body=b"one of two hundred"))
    store = builder.write(tmp_path / "store")
    command = [sys.executable, "-c", SLOW, str(store), str(jobs)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        assert child.stdout.readline() == "begun\n"
        os.killpg(child.pid, signal.SIGINT)  # as a terminal does: the workers get it, too
        output, errors = child.communicate(timeout=60)
    assert child.returncode == 130, output + errors
    assert "interrupted after" in output
    assert "interrupted before it was read" in output  # by the next source
    assert "Traceback" not in output + errors


SLOW = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # where tests run in the background, it is ignored
from gapless.cli import app
from gapless.traces.sources.rocketmq.segments import tasks
judge = tasks.judge
def slow(*arguments, **named):
    os.write(1, b"begun\\n")  # at once, whole: two workers say so
    time.sleep(0.5)
    return judge(*arguments, **named)
tasks.judge = slow
app(["check", sys.argv[1], "/nowhere", "--jobs", sys.argv[2]])
"""


def test_where_every_rule_is_ignored_nothing_was_checked(damaged: Path) -> None:
    ran = gapless("check", damaged, *chain.from_iterable(("--ignore", spec) for spec in SPECS))
    assert (ran.exit_code, "nothing was judged" in ran.stdout) == (3, True)
    assert "1 rule ignored" in gapless("check", damaged, "--ignore", "queue/entry-points-at-its-message").stdout


def test_a_pipe_is_written_to_and_not_replaced(damaged: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "report.json")
    assert gapless("check", damaged, "--json", link).exit_code == 1
    assert link.is_symlink()
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["verdict"] == "departs"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["/bin/cat", str(pipe)], stdout=subprocess.PIPE, text=True) as reader:
        assert gapless("check", damaged, "--json", pipe).exit_code == 1
        assert json.loads(reader.communicate(timeout=30)[0])["verdict"] == "departs"
    assert pipe.is_fifo()


def test_trace_names_the_file_that_cannot_be_written(damaged: Path, tmp_path: Path) -> None:
    """And not the store, nor a name that only the command knows."""
    (tmp_path / "full.ndjson").symlink_to("/dev/full")
    full = gapless("trace", damaged, "--out", tmp_path / "full.ndjson")
    assert (full.exit_code, full.stderr) == (2, "gapless: /dev/full: No space left on device\n")
    nowhere = gapless("trace", damaged, "--out", tmp_path / "nowhere/events.parquet")
    assert (nowhere.exit_code, nowhere.stderr) == (
        2,
        f"gapless: --out {tmp_path}/nowhere/events.parquet: folder {tmp_path}/nowhere {NO_FOLDER}\n",
    )
    elsewhere = gapless("trace", damaged, "--out", "s3://bucket/events.parquet")
    assert (elsewhere.exit_code, "s3://: files are written to a disk only" in elsewhere.stderr) == (2, True)


@pytest.mark.parametrize(("sink", "code"), [("| head -1 >&2; exit ${PIPESTATUS[0]}", 1), ("> /dev/full", 2)])
def test_the_reader_is_gone_or_nothing_can_be_written(damaged: Path, sink: str, code: int) -> None:
    command = ["/bin/bash", "-c", f"'{sys.executable}' -m gapless check '{damaged}' {sink}"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (ran.returncode, "Traceback" in ran.stderr) == (code, False), ran.stderr


@pytest.mark.parametrize(
    ("asked", "unbuffered"),
    [("--version", ""), ("--help", "1"), ("check --help", ""), ("rules", ""), ("rules", "1")],
)
def test_help_that_cannot_be_written_is_reported(asked: str, unbuffered: str) -> None:
    command = ["/bin/bash", "-c", f"'{sys.executable}' -m gapless {asked} > /dev/full"]
    changed = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=changed)
    assert (ran.returncode, ran.stderr) == (2, "gapless: cannot write the output (No space left on device)\n")


@pytest.mark.parametrize(
    ("command", "code", "unbuffered"),
    [
        ("--help 2>&1 | true", 0, ""),
        ("check --help 2>&1 | true", 0, "1"),
        ("2>&1 | true", 2, ""),
        ("check STORE --nothing 2>&1 | true", 2, "1"),
        ("trace /nowhere --out a.parquet 2>&1 | true", 2, ""),
        ("nothing 2> /dev/full", 2, ""),
        ("nothing 2> /dev/full", 2, "1"),
        ("prove nothing 2> /dev/full", 2, "1"),
    ],
)
def test_whatever_breaks_at_the_other_end_has_not_the_exit_code_of_a_departure(
    command: str, code: int, unbuffered: str
) -> None:
    shell = ["/bin/bash", "-c", f"'{sys.executable}' -m gapless {command}; exit ${{PIPESTATUS[0]}}"]
    changed = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    ran = subprocess.run(shell, capture_output=True, text=True, check=False, timeout=120, env=changed)
    assert (ran.returncode, ran.stderr) == (code, "")


EMPTY = (
    'gapless: -: stdin.ndjson, line 1: the file is empty, expected {"schema":"gapless-events","version":1}, as every '
    "file of events begins (gapless schema events describes it)\n"
)


@pytest.mark.parametrize(
    ("command", "code", "expected"),
    [
        ("check STORE >&-", 1, ""),
        ("check STORE <&- >&- 2>&-", 1, ""),
        ("rules >&-", 0, ""),
        ("check STORE --json FILE >&- 2>&-", 1, ""),
        ("check - <&-", 2, EMPTY),
    ],
)
def test_streams_may_be_closed(command: str, code: int, expected: str, damaged: Path, tmp_path: Path) -> None:
    """A daemon starts what it starts so: there is a verdict all the same, and nothing goes into a file of another."""
    words = command.replace("STORE", f"'{damaged}'").replace("FILE", f"'{tmp_path}/report.json'")
    shell = ["/bin/bash", "-c", f"'{sys.executable}' -m gapless {words}"]
    ran = subprocess.run(shell, capture_output=True, text=True, check=False, timeout=120)
    assert (ran.returncode, ran.stderr) == (code, expected)
    if "FILE" in command:
        assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["verdict"] == "departs"


@pytest.mark.parametrize("columns", ["0", "1", "wide"])
def test_what_is_stated_is_the_same_however_wide_a_terminal_is(columns: str, damaged: Path) -> None:
    result = gapless_process("check", damaged, COLUMNS=columns)
    assert (result.returncode, result.stderr, result.stdout.count("\n") > 10) == (1, "", True)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_locale_that_lacks_characters_gets_others(encoding: str, damaged: Path) -> None:
    """A story has arrows. JSON is for programs, which expect UTF-8."""

    def ran(*words: object) -> tuple[int, bytes]:
        command = [sys.executable, "-m", "gapless", *map(str, words)]
        changed = {**os.environ, "PYTHONIOENCODING": encoding}
        done = subprocess.run(command, capture_output=True, check=False, timeout=120, env=changed)
        assert not done.stderr
        return done.returncode, done.stdout

    code, result = ran("explain", damaged, "--trace", "orders/1")
    assert (code, b"end 5 -> 6" in result) == (1, True)
    if encoding != "ascii":
        return
    assert ran("steps", "queue")[0] == 0
    code, result = ran("check", damaged, "--json", "-")
    assert (code, "end 5 → 6" in "".join(json.loads(result.decode())["findings"][0]["story"])) == (1, True)


def test_a_question_that_cannot_be_asked_is_reported() -> None:
    for wrong in ({"profile": "no-such"}, {"jobs": 0}):
        with pytest.raises(UsageError):
            check([], **wrong)
    assert check(str(recording("lmq"))).verdict == "conforms"


def test_explain_tells_that_a_recorded_trace_conforms(tmp_path: Path) -> None:
    out = tmp_path / "events.ndjson"
    gapless("trace", recording("lmq"), "--out", out)
    result = gapless("explain", out, "--trace", "orders/0")
    assert result.exit_code == 0
    assert result.stdout.startswith("orders/0 conforms: ")


def test_an_output_format_is_a_function_and_a_line(damaged: Path, tmp_path: Path) -> None:
    (tmp_path / "tally.py").write_text("def written(report): return f'{report.verdict}: {len(report.findings)}\\n'\n")
    added = "FORMATS.append(Format('tally', 'tally:written', 'Write how much was found.', announced=True))"
    program = (
        f"from gapless.traces.report.formats import FORMATS, Format; {added}; from gapless.cli import main; main()"
    )
    command = [sys.executable, "-c", program, "check", str(damaged), "--tally"]
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    ran = [
        subprocess.run(
            [*command, out], capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": path}
        )
        for out in ("-", str(tmp_path / "tally.txt"))
    ]
    assert [(one.returncode, one.stderr) for one in ran] == [(1, "")] * 2
    assert ran[0].stdout == (tmp_path / "tally.txt").read_text() == "departs: 1\n"
    assert ran[1].stdout.endswith(f"\ntally: {tmp_path / 'tally.txt'}\n")
