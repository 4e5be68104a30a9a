"""Ctrl-C at a chosen point of a call: at every one where CPython may deliver a signal, one after the other.

CPython looks for signals when a function begins, after a call has returned, and when it jumps backward. There is a
point at each of these, in whatever Python function the call comes to, our own and the standard library's; and one where
a `with` statement begins, since a lock that is waited for may be interrupted before it is taken. What is left out: the
instructions between these, where no signal comes. There is one too many where a Python function returns to another.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

_LOOKED = tuple(
    dis.opmap[name]
    for name in dis.opmap
    if name in {"CALL", "CALL_KW", "CALL_FUNCTION_EX", "JUMP_BACKWARD"} or name.startswith("POP_JUMP_BACKWARD")
)
"""The instructions after which CPython looks for signals. Where a function begins, the tracer gets a call."""

_WITH = dis.opmap.get("BEFORE_WITH", -1)


@lru_cache(None)
def _instructions(code: CodeType) -> bytes:
    return code.co_code


class Interrupter:
    """Counts the points of a call, and raises KeyboardInterrupt at the one numbered `point`, from 1 on."""

    def __init__(self, point: int) -> None:
        self.left = point
        self.was_swallowed = False
        self._tracer = (
            self._begins
        )  # kept, and so are those of frames: where one raises, CPython 3.11 uses it after it is freed
        self._locals: list[object] = []

    @property
    def has_come(self) -> bool:
        """True if the point was reached."""
        return self.left <= 0

    def call(self, what: Callable[[], object]) -> KeyboardInterrupt | None:
        """Do it; returns the interrupt that ended it, if one did. Raises what it raises otherwise."""
        before, sys.unraisablehook = (sys.gettrace(), sys.unraisablehook), self._swallowed
        try:
            sys.settrace(self._tracer)
            what()
        except KeyboardInterrupt as interrupt:
            return interrupt
        finally:
            sys.settrace(before[0])
            sys.unraisablehook = before[1]
        return None

    def _swallowed(self, _unraisable: object) -> None:
        """Python itself swallows what a finalizer or a callback of a weak reference raises."""
        self.was_swallowed = True

    def _point(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt

    def _begins(self, frame: FrameType, event: str, _argument: object) -> Callable[..., Any] | None:
        if event != "call" or self.has_come or frame.f_globals.get("__package__") == __package__:
            return None
        self._point()
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        instructions, last = _instructions(frame.f_code), -1

        def trace_line(frame: FrameType, event: str, _argument: object) -> Callable[..., Any] | None:
            nonlocal last
            if event == "exception":  # the call has not returned
                last = -1
            elif event == "opcode" and not self.has_come:
                now = frame.f_lasti
                if (last >= 0 and instructions[last] in _LOOKED) or instructions[now] == _WITH:
                    last = now
                    self._point()
                last = now
            return trace_line

        self._locals.append(trace_line)
        return trace_line
