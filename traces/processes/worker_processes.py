"""The start of worker processes by a program with threads.

Python's own way runs the program again in every new process. In a program without `if __name__ == "__main__"` each
would start the same check, and its own workers. Ours need nothing of it: a user's specs are loaded by their files.
"""

import sys
from multiprocessing import context
from threading import Lock
from types import ModuleType
from typing import Any

_starting = Lock()


class _WorkerProcess(context.SpawnProcess):
    """A new process that does not run the program again."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802 - as multiprocessing names it
        with _starting:
            program, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
            try:
                return context.SpawnProcess._Popen(process_obj)  # noqa: SLF001 - as its subclasses do
            finally:
                sys.modules["__main__"] = program


class WorkerContext(context.SpawnContext):
    """A context of multiprocessing whose processes start in this way."""

    Process = _WorkerProcess
