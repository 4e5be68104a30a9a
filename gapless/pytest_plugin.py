"""The plugin of pytest: `assert_conforms` as a fixture, recordings and stories as tests.

It is loaded by every pytest in whose environment gapless is installed, so it imports nothing that is slow to load until
there is something to do.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from gapless.traces.report.values import Report

AT_MOST = 1000  # traces of one source that are tests of their own, unless the user says otherwise


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of `pytest`, which `pytest --help` lists."""
    group = parser.getgroup("gapless", "recordings of message brokers")
    group.addoption("--gapless", action="store_true", help="recordings are tests: stores, event files; one for a trace")
    group.addoption("--gapless-profile", metavar="PROFILE", help="whose deviations are anomalies; as in gapless check")
    group.addoption(
        "--gapless-spec", metavar="SPEC", action="append", default=[], help="a file with a spec of yours (repeatable)"
    )
    group.addoption(
        "--gapless-traces",
        metavar="N",
        type=int,
        default=AT_MOST,
        help="a source of more traces is one test (default: %(default)s)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Report mistakes in `[tool.gapless]` before anything is collected, with `--gapless`."""
    if config.getoption("gapless"):
        from gapless.testing.configuration import options, redact_key, threshold

        options(config)
        threshold(config)
        redact_key(config)


def pytest_pycollect_makeitem(collector: pytest.Module, name: str, obj: object) -> None:
    """A machine that is named like a test is reported, for pytest would leave it out with a warning."""
    stateful = "gapless.properties.machines.stateful"
    bases = [
        getattr(module, base)
        for where, base in (("spec_machine", "SpecMachine"), ("subject_machine", "SubjectMachine"))
        if (module := sys.modules.get(f"{stateful}.{where}"))
    ]
    if isinstance(obj, type) and issubclass(obj, tuple(bases)) and collector.classnamefilter(name):
        raise collector.CollectError(
            f"{name} is a machine, which pytest does not run: write `{name} = machine_for(…).TestCase`"
        )


@pytest.fixture
def assert_conforms(pytestconfig: pytest.Config) -> Callable[..., Report]:
    """`gapless.assert_conforms`, as pytest was called and `[tool.gapless]` says, where a call does not."""
    from gapless.testing.configuration import options, redact_key
    from gapless.testing.conformance import assert_conforms as by_hand

    return partial(by_hand, redact_key=redact_key(pytestconfig), **options(pytestconfig))


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A story, which says that it is one; with `--gapless` a file that holds events."""
    if file_path.suffix == ".story":
        from gapless.testing.collecting import story_file

        return story_file(file_path, parent)
    if parent.config.getoption("gapless"):
        from gapless.testing.collecting import recording_file

        return recording_file(file_path, parent)
    return None


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """With `--gapless` a folder that is a recording, such as a store."""
    if parent.config.getoption("gapless"):
        from gapless.testing.collecting import recording_folder

        return recording_folder(path, parent)
    return None
