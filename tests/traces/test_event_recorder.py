"""`gapless.Recorder`: its recordings are read and judged, its refusals name the step, and a kill leaves it readable."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless import Recorder, check
from gapless.traces.events.event import OUTCOMES
from gapless.traces.events.reading import read
from gapless.traces.events.schema import Event, with_specs
from gapless.traces.specs import load
from tests.support.command_line import ROOT
from tests.support.pages import blocks

LEASE = ROOT / "examples/lease.py"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A recording that is not there yet."""
    return tmp_path / "trace.ndjson"


def lines(path: Path) -> list[Any]:
    """The events of a recording, without its header."""
    header, *events = path.read_text(encoding="utf-8").splitlines()
    assert json.loads(header) == {"schema": "gapless-events", "version": 1, "profile": "strict"}
    return [json.loads(event) for event in events]


def test_steps_are_recorded_in_order_and_judged(path: Path) -> None:
    with Recorder(path, spec=LEASE) as recorder:
        recorder.step("bills", "grant", worker=0, token=1)
        recorder.step("bills", "write", worker=0, token=1, saw={"seen": 1})
        recorder.step("bills", "write", worker=1, token=7, outcome="refused")
    assert [event["position"] for event in lines(path)] == [0, 1, 2]
    report = check(path, specs=[LEASE])
    assert (report.verdict, report.coverage["lease.write"]) == ("conforms", 1)
    with Recorder(path, spec=LEASE) as recorder:  # a recording that is there is replaced
        recorder.step("bills", "write", worker=1, token=7)
    assert check(path, specs=[LEASE]).findings[0].rule == "lease/token-was-given-to-the-worker"


def test_a_spec_is_looked_for_in_the_folder_of_the_caller(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code/lease.py").write_bytes(LEASE.read_bytes())
    (tmp_path / "code/run.py").write_text(
        'from gapless import Recorder\nRecorder("trace.ndjson", spec="lease.py").close()\n'
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    subprocess.run([sys.executable, "code/run.py"], check=True, cwd=tmp_path, env=environment)
    assert lines(tmp_path / "trace.ndjson") == []


def test_an_attempt_is_taken_refused_or_unknown(path: Path) -> None:
    with Recorder(path, spec=LEASE) as recorder:
        with recorder.attempt("bills", "grant", worker=0, token=1) as attempt:
            attempt.saw(last=1)
        with recorder.attempt("bills", "write", worker=0, token=3) as attempt:
            attempt.refused()
        with pytest.raises(TimeoutError), recorder.attempt("bills", "write", worker=0, token=1):
            raise TimeoutError
        with recorder.attempt("bills", "expire") as attempt:
            attempt.unknown()
        with pytest.raises(ValueError, match="no field 'lost'"), recorder.attempt("bills", "expire") as attempt:
            attempt.saw(lost=1)
    assert [event.get("outcome", "ok") for event in lines(path)] == ["ok", "refused", *("unknown",) * 3]
    assert check(path, specs=[LEASE]).verdict == "conforms"


def test_an_attempt_that_is_never_entered_is_reported_with_its_line(path: Path) -> None:
    recorder = Recorder(path, spec=LEASE)
    with recorder.attempt("bills", "grant", worker=0, token=1):
        recorder.attempt("bills", "write", worker=0, token=1).refused()
    line = sys._getframe().f_lineno - 1
    place = f'{__file__}:{line}: attempt("bills", "write")'
    with pytest.raises(ValueError, match=re.escape(f"{place} was never entered")):
        recorder.close()
    assert len(lines(path)) == 1
    recorder.close()


def test_an_attempt_that_is_never_entered_hides_no_other_error(path: Path) -> None:
    def fails() -> None:
        with Recorder(path, spec=LEASE) as recorder:
            recorder.attempt("bills", "expire")
            raise TimeoutError

    with pytest.raises(TimeoutError):
        fails()


def test_a_map_cannot_be_seen(path: Path) -> None:
    seen = r"saw\.tokens: it is a Map: only numbers and flags can be seen: "
    with Recorder(path, spec=LEASE) as recorder, pytest.raises(ValueError, match=seen):
        recorder.step("bills", "expire", saw={"tokens": 1})
    assert lines(path) == []


class Worker(IntEnum):
    """A number with a name."""

    FIRST = 1


def test_numbers_of_other_types_are_taken_as_they_are_meant(path: Path) -> None:
    with Recorder(path, spec=LEASE) as recorder:
        recorder.step("bills", "grant", worker=Worker.FIRST, token=int(np.int64(1)), saw={"taken": True})
    (event,) = lines(path)
    assert (event["args"], event["saw"]) == ({"worker": 1, "token": 1}, {"taken": 1})


@pytest.mark.parametrize(
    ("action", "args", "complaint"),
    [
        ("grnat", {}, "lease.py has no step 'grnat' (did you mean grant?): its steps are grant, expire, write"),
        ("grant", {"worker": 1}, "grant without its argument 'token': it takes worker, token"),
        ("grant", {"worker": 1, "tokn": 1}, "no argument 'tokn' (did you mean token?): it takes worker, token"),
        ("expire", {"worker": 1}, "expire has no argument 'worker': it takes none"),
        ("grant", {"worker": 1, "token": "1"}, "grant.token is '1', expected a whole number"),
        ("grant", {"worker": 1, "token": 1.0}, "grant.token is 1.0, expected a whole number"),
        ("grant", {"worker": 1, "token": None}, "grant.token is None, expected a whole number"),
        ("grant", {"worker": 1, "token": True}, "grant.token is True, expected a whole number: it is no flag"),
        ("grant", {"worker": 2**63, "token": 1}, "expected a number of 64 bits"),
        ("expire", {"outcome": "refuse"}, "outcome is 'refuse', expected ok, refused, unknown or inferred (did you"),
        ("expire", {"saw": {"sen": 1}}, "saw has no field 'sen' (did you mean seen?)"),
        ("expire", {"saw": {"taken": 2}}, "saw.taken is 2, expected True or False: it is a flag"),
        ("expire", {"saw": {"lost": 2}}, "the numbers and flags of State are taken, last, seen"),
    ],
)
def test_a_step_that_is_none_is_refused_where_it_is_called(
    path: Path, action: str, args: dict[str, Any], complaint: str
) -> None:
    with Recorder(path, spec=LEASE) as recorder:
        recorder.step("bills", "expire", outcome="unknown")
        with pytest.raises(ValueError, match=re.escape(complaint)):
            recorder.step("bills", action, **args)
        recorder.step("bills", "expire", outcome="unknown")
    assert [event["position"] for event in lines(path)] == [0, 1]


def test_an_attempt_of_a_step_that_is_none_is_refused_before_its_block(path: Path) -> None:
    with Recorder(path, spec=LEASE) as recorder:
        with pytest.raises(ValueError, match="did you mean grant"):
            recorder.attempt("bills", "grnat", worker=1)
        for trace in ("", 7, "\udcff"):
            with pytest.raises(ValueError, match="trace is"):
                recorder.step(trace, "expire")  # type: ignore[arg-type] # which is the question
    assert lines(path) == []


@pytest.mark.parametrize("name", ["notes.ndjson", "data.parquet", "trace.ndjson.gz", "trace", "no/trace.ndjson", "."])
def test_a_file_that_is_no_recording_is_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / "notes.ndjson").write_text('{"note": 1}\n')
    with pytest.raises(ValueError, match=r": (.*: )?(name|move) "):
        Recorder(tmp_path / name, spec=LEASE)
    assert (tmp_path / "notes.ndjson").read_text() == '{"note": 1}\n'
    assert [one.name for one in tmp_path.iterdir()] == ["notes.ndjson"]


def test_two_recorders_do_not_share_a_file_and_a_closed_one_records_nothing(path: Path) -> None:
    with Recorder(path, spec=LEASE) as recorder:
        with pytest.raises(ValueError, match="another Recorder writes to it"):
            Recorder(path, spec=LEASE)
        recorder.step("bills", "grant", worker=0, token=1)
    with pytest.raises(ValueError, match="closed"):
        recorder.step("bills", "expire")
    assert len(lines(path)) == 1


def test_threads_share_a_recorder(path: Path) -> None:
    with Recorder(path, spec=LEASE) as recorder, ThreadPoolExecutor(8) as pool:
        for trace in range(200):
            pool.submit(recorder.step, f"bills-{trace}", "grant", worker=0, token=1)
    assert [event["position"] for event in lines(path)] == list(range(200))
    assert check(path, specs=[LEASE]).counts.by_spec == {"lease": 200}


FORKED = """
import os, sys
from gapless import Recorder
with Recorder(sys.argv[1], spec=sys.argv[2]) as recorder:
    if not os.fork():
        try:
            recorder.step("bills", "expire")
        except ValueError as refused:
            recorder.close()
            os._exit(7 if "was forked" in str(refused) else 8)
    assert os.wait()[1] >> 8 == 7
    recorder.step("bills", "grant", worker=0, token=1)
"""
KILLED = """
import sys
from itertools import count
from threading import Thread
from gapless import Recorder
recorder = Recorder(sys.argv[1], spec=sys.argv[2])
def record(trace):
    for token in count(1):
        recorder.step(trace, "grant", worker=0, token=token)
        recorder.step(trace, "expire")
for trace in ("bills", "orders"):
    Thread(target=record, args=(trace,), daemon=True).start()
print("recording", flush=True)
sys.stdin.read()
"""


def test_a_child_of_a_fork_is_refused_and_its_parent_goes_on(path: Path) -> None:
    subprocess.run([sys.executable, "-c", FORKED, path, LEASE], check=True, cwd=ROOT)
    assert len(lines(path)) == 1


def test_a_kill_leaves_a_recording_that_is_judged(path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, path, LEASE], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        while path.stat().st_size < 20_000:
            os.sched_yield()
        process.send_signal(signal.SIGKILL)
    report = check(path, specs=[LEASE])
    assert (report.verdict, report.counts.by_spec["lease"] > 50) == ("conforms", True)


def test_no_line_lies_across_two_pages_of_the_file(path: Path) -> None:
    """A kill cuts a write in two at the end of a page, once in a hundred kills or so."""
    with Recorder(path, spec=LEASE) as recorder:
        for trace in range(300):
            recorder.step("long " * (trace % 97 * (trace % 3)) + str(trace), "grant", worker=0, token=1)
    end = 0
    for line in path.read_bytes().splitlines(keepends=True):
        first, end = end, end + len(line)
        assert first // 4096 == (end - 1) // 4096
    assert len(lines(path)) == check(path, specs=[LEASE]).counts.by_spec["lease"] == 300


def test_a_full_disk_leaves_whole_lines(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.pwrite

    def full(file: int, line: bytes, at: int) -> int:
        if line.startswith(b'{"source"'):
            return whole(file, line[:10], at)
        raise OSError(28, "No space left on device")

    with Recorder(path, spec=LEASE) as recorder:
        recorder.step("bills", "expire", outcome="unknown")
        monkeypatch.setattr(os, "pwrite", full)
        with pytest.raises(OSError, match="No space left"):
            recorder.step("bills", "expire")
        monkeypatch.undo()
        recorder.step("bills", "expire", outcome="unknown")
    assert [event["position"] for event in lines(path)] == [0, 1]


def test_the_example_of_the_page_conforms(tmp_path: Path) -> None:
    (example,) = (block for block in blocks(ROOT / "docs/own-system.md") if block.info == "python")
    (tmp_path / "lease.py").write_bytes(LEASE.read_bytes())
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    subprocess.run([sys.executable, "-c", example.content], check=True, cwd=tmp_path, env=environment)
    report = check(tmp_path / "trace.ndjson", specs=[tmp_path / "lease.py"])
    assert (report.verdict, report.coverage["lease.write"]) == ("conforms", 1)
    assert [event.get("outcome", "ok") for event in lines(tmp_path / "trace.ndjson")] == [*("ok",) * 4, "refused"]


SPEC = load(LEASE)
NUMBERS = st.integers(-(2**63), 2**63 - 1)
STEPS = st.tuples(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6),
    st.sampled_from(list(SPEC.actions)).flatmap(
        lambda action: st.tuples(
            st.just(action), st.fixed_dictionaries(dict.fromkeys(SPEC.parameters[action], NUMBERS))
        )
    ),
    st.sampled_from(OUTCOMES),
    st.none() | st.fixed_dictionaries({}, optional={"last": NUMBERS, "seen": NUMBERS, "taken": st.booleans()}),
)


@given(st.lists(STEPS, max_size=8))
def test_a_recording_is_read_as_it_was_recorded(steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.ndjson"
        with Recorder(path, spec=SPEC, source="a test") as recorder:
            for trace, (action, args), outcome, saw in steps:
                recorder.step(trace, action, outcome=outcome, saw=saw, **args)
        schema = with_specs((SPEC,))
        found = [event for batch in read(path, of=schema) for event in schema.to_events(batch)]
    assert found == [
        Event.model_validate(
            {"source": "a test", "spec": "lease", "trace": trace, "position": at, "action": action, "args": args}
            | {"outcome": outcome, "saw": saw and {name: int(value) for name, value in saw.items()}},
            context={"lease": SPEC},
        )
        for at, (trace, (action, args), outcome, saw) in enumerate(steps)
    ]
