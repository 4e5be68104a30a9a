"""An interrupt ends the command with its exit code and no traceback, whenever it comes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gapless import cli, entry
from tests.support.night import NIGHT

INTERRUPTING = """
import os, signal, sys
{ignored}
class Interrupts:
    def find_spec(self, name, *_):
        if name == "{module}":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupts())
sys.argv = ["gapless", "--version"]
from gapless.entry import main
main()
"""
IGNORED = "signal.signal(signal.SIGINT, signal.SIG_IGN)"  # as a shell does for its background jobs


@pytest.fixture(autouse=True)
def _heard_again() -> Iterator[None]:
    """Restore the handling of interrupts: a command leaves it off, but this process continues."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("module", ["gapless.cli", "typer", "gapless.commands.watch"])
def test_an_interrupt_while_it_loads_leaves_no_traceback(module: str) -> None:
    code = INTERRUPTING.format(module=module, ignored="")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (entry.INTERRUPTED, "", "")


def test_a_background_job_continues() -> None:
    code = INTERRUPTING.format(module="typer", ignored=IGNORED)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("gapless ")


def test_an_interrupt_before_a_command_begins_has_the_same_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "app", interrupted)
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert ended.value.code == entry.INTERRUPTED


@pytest.mark.parametrize("wrong", [MemoryError(), AttributeError("ours")])
def test_a_fault_of_ours_has_not_the_exit_code_of_a_departure(
    wrong: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python exits with 1 after an uncaught exception: a scheduler would take that for a verdict."""

    def faulty() -> None:
        raise wrong

    monkeypatch.setattr(cli, "app", faulty)
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert (ended.value.code, type(wrong).__name__ in capsys.readouterr().err) == (2, True)


LEFT = """
import atexit, gc, sys
from gapless import entry
atexit.register(lambda: print(gc.get_freeze_count()))
sys.argv = ["gapless", *{words}]
entry.main()
"""


@pytest.mark.parametrize("words", [["--version"], ["no-such-command"]])
def test_what_is_there_at_the_end_is_not_looked_through_for_garbage(words: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", LEFT.format(words=words)], capture_output=True, check=False, text=True)
    assert int(done.stdout.splitlines()[-1]) > 10_000


def test_files_of_a_folder_are_not_taken_for_modules_of_python(tmp_path: Path) -> None:
    """A user's spec of queues is a `queue.py`; Python puts the folder where `-m` is given before its own."""
    for name in ("queue", "json", "random", "numpy", "rich"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError")
    (tmp_path / "events.ndjson").write_text('{"schema":"gapless-events","version":1}\n')
    command = [sys.executable, "-m", "gapless", "check", "events.ndjson"]
    ran = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(entry.__file__).parents[1])},
    )
    assert (ran.returncode, ran.stderr, "inconclusive: " in ran.stdout) == (3, "", True)


LEASE = Path(__file__).parents[2] / "examples" / "lease.py"
HEADER = b'{"schema":"gapless-events","version":1}\n'


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_what_is_terminated_leaves_nothing_behind(number: signal.Signals, code: int, tmp_path: Path) -> None:
    """It is copying standard input, which has not ended: the copy is none of what the user asked for."""
    with subprocess.Popen(
        [sys.executable, "-m", "gapless", "check", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as ran:
        assert ran.stdin is not None
        ran.stdin.write(HEADER)
        ran.stdin.flush()
        while not list(tmp_path.glob("gapless-*/stdin.ndjson")):
            time.sleep(0.01)
        ran.send_signal(number)
        assert ran.wait(60) == code
        assert (ran.stderr.read() if ran.stderr else b"", list(tmp_path.iterdir())) == (b"", [])


WITH_WORKERS = """
import os, sys, time
from pathlib import Path
from gapless.traces.engines.local import Local
def work(number):
    Path(sys.argv[1], str(os.getpid())).touch()
    time.sleep(600)
for _ in Local(2).each(work, [1, 2], [1, 1]):
    pass
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent ended")
def test_workers_end_with_a_process_that_is_killed(tmp_path: Path) -> None:
    """Orphans waited for work forever, and the reader of their output waited for them."""
    with subprocess.Popen([sys.executable, "-c", WITH_WORKERS, str(tmp_path)], stdout=subprocess.PIPE) as ran:
        while len(list(tmp_path.iterdir())) < 2:
            time.sleep(0.01)
        ran.kill()
        try:
            ran.communicate(timeout=60)  # the end of output, which the workers have open too
        finally:
            left = [int(one.name) for one in tmp_path.iterdir() if Path("/proc", one.name).exists()]
            for each in left:
                os.kill(each, signal.SIGKILL)


INTERRUPTED_WORKERS = """
import os, signal, sys
class Interrupts:
    def find_spec(self, name, *_):
        if name == "gapless.properties.proof.induction":
            os.kill(os.getpid(), signal.SIGINT)
if "--multiprocessing-fork" in sys.orig_argv:
    sys.meta_path.insert(0, Interrupts())
"""


@pytest.mark.parametrize("command", ["prove", "audit"] if NIGHT else ["prove"])  # both have workers of one kind
def test_an_interrupt_is_no_business_of_workers_that_begin(command: str, tmp_path: Path) -> None:
    """Ctrl-C reaches workers too: while they imported modules, each printed a traceback."""
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTED_WORKERS, encoding="utf-8")
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "gapless", command, LEASE],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": paths, "XDG_CACHE_HOME": str(tmp_path)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        check=False,
        timeout=600,
    )
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr.decode()


FAULTS = """
import ctypes, resource, numpy
from gapless.entry import work_steadily
if {steadily}:
    work_steadily()
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        [numpy.ones(1 << 20, numpy.int64) for _ in range(3)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(faults() if hasattr(ctypes.CDLL(None), "mallopt") else -1)
"""


def test_columns_that_come_and_go_are_not_asked_of_the_system_again() -> None:
    """Pages that the system had to fill: of 20 rounds of 24 MB, all without the setting, hardly any with it."""
    commands = [[sys.executable, "-c", FAULTS.format(steadily=steadily)] for steadily in (False, True)]
    fresh, kept = (int(subprocess.run(command, capture_output=True, check=True).stdout) for command in commands)
    if fresh < 0:
        pytest.skip("this C library has no mallopt")
    assert 100 * kept < fresh


DELETING = """
import os, signal, time
from gapless import cli, entry
class Deleted:
    def __del__(self):
        os.kill(os.getpid(), signal.{name})
        for _ in range(1000):
            pass
def run():
    Deleted()
    time.sleep(60)
cli.main = run
entry.main()
"""


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_while_an_object_is_deleted_is_not_lost(name: str, code: int) -> None:
    """Python drops exceptions in `__del__`, for example of LLVM objects: a command continued, and exited with 0."""
    done = subprocess.run(
        [sys.executable, "-c", DELETING.format(name=name)],
        capture_output=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        check=False,
    )
    assert (done.returncode, done.stderr) == (code, b"")


ENDING = """
import atexit, ctypes, os, signal, sys
library = ctypes.CDLL(None)
atexit.register(print, "all is tidied up", flush=True)
{interrupt}
from gapless import cli, entry
cli.main = lambda: sys.exit({code})
entry.main()
"""
AT_EXIT = "atexit.register(os.kill, os.getpid(), signal.SIGINT)"
BEHIND_IT = "library.__cxa_atexit(getattr(library, 'raise'), ctypes.c_void_p(signal.SIGINT), None)"  # of glibc


@pytest.mark.parametrize("code", [0, 1, 130])
@pytest.mark.parametrize("interrupt", [AT_EXIT, *([BEHIND_IT] if sys.platform == "linux" else [])])
def test_an_interrupt_behind_the_last_word_changes_no_exit_code(interrupt: str, code: int) -> None:
    """An interrupt while Python ended was printed as an ignored exception, or the exit code was -2."""
    done = subprocess.run(
        [sys.executable, "-c", ENDING.format(interrupt=interrupt, code=code)],
        capture_output=True,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "all is tidied up\n", "")


FORKING = """
import os, signal
sent = []
def before():
    if not sent:
        sent.append(os.kill(os.getpid(), signal.{name}))
os.register_at_fork(before=before)
from gapless.traces.engines import local
local.ONE_PROCESS = 0
signal.signal(signal.SIGTERM, signal.default_int_handler)
with local.started(None, 2, None) as engine:
    try:
        print(list(engine.each(abs, [-1, -2, -3], [1, 1, 1])))
    except KeyboardInterrupt:
        print("interrupted", sent)
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_while_workers_are_forked_is_not_lost(name: str) -> None:
    """Python passes over what is raised in what it calls around a fork: a check went on to its end, and to 0."""
    done = subprocess.run(
        [sys.executable, "-c", FORKING.format(name=name)], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted [None]\n", "")
