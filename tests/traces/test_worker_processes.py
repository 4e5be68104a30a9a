"""Workers of a program that has threads: they do not run the program again."""

import subprocess
import sys
from pathlib import Path

from tests.support.event_files import mixed_traces, write

PROGRAM = """
import sys, threading
import gapless
threading.Thread(target=threading.Event().wait, daemon=True).start()
print("checking")
print(gapless.check(sys.argv[1], jobs=2, split=2000).verdict)
"""


def test_a_program_with_threads_and_without_a_main_guard_checks_once(tmp_path: Path) -> None:
    """Each worker would begin the check again, and the verdict was *unreadable*."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    write(tmp_path / "a.ndjson", mixed_traces([1] * 200, mingled=1))
    found = subprocess.run(
        [sys.executable, program, tmp_path / "a.ndjson"], capture_output=True, text=True, timeout=300, check=False
    )
    assert (found.stdout, found.stderr) == ("checking\ndeparts\n", "")
