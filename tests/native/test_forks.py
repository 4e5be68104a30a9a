"""A process may fork while one of its threads compiles: the child compiles as well, and does not wait for ever."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.night import NIGHT

PROGRAM = """
import os, sys, threading, time
from gapless.traces.sources.rocketmq.clients.requests.plain_requests import _read_requests
from gapless.traces.sources.rocketmq.log.records import length_of

compiling = threading.Thread(target=_read_requests.code.load)
compiling.start()
time.sleep(float(sys.argv[1]))
child = os.fork()
if not child:
    length_of.compiled.code.load()
    os._exit(0)
compiling.join()
sys.exit(os.waitpid(child, 0)[1])
"""


@pytest.mark.parametrize("pause", [0.1, 0.5] if NIGHT else [0.1])
def test_a_child_compiles_though_it_was_forked_while_another_thread_did(pause: float, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, str(pause)],
        env=os.environ | {"GAPLESS_CACHE": str(tmp_path / "cache")},
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0
