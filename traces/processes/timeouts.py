"""Time limits for calls that may never return, and for interrupts; many calls that wait, at once.

A call that may never return runs in a thread of its own, which is abandoned when time is up.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread, Timer
from typing import TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")
OUT_OF_TIME = signal.SIGALRM
AT_ONCE = 16  # calls that wait, for a server most often


class OutOfTime(KeyboardInterrupt):
    """The time for the current work is up; signal `OUT_OF_TIME` raises it."""


@contextmanager
def deadline_deferred() -> Iterator[None]:
    """Run a block to its end; raises OutOfTime after it if time ran out meanwhile."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {OUT_OF_TIME})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def answer_within(ask: Callable[[], Answer], seconds: float) -> Answer:
    """Return the answer. Raises TimeoutError if it takes longer, and what `ask` raises."""
    answers: list[Answer] = []
    problems: list[Exception] = []

    def wait() -> None:
        try:
            answers.append(ask())
        except Exception as error:  # noqa: BLE001 - raised again in the waiting thread
            problems.append(error)

    waits = Thread(target=wait, daemon=True)
    waits.start()
    waits.join(max(0.0, seconds))
    if problems:
        raise problems[0]
    if not answers:
        raise TimeoutError
    return answers[0]


def each_at_once(do: Callable[[Item], Answer], items: Iterable[Item]) -> list[Answer]:
    """Do something that waits with each item, some at a time, and return the answers in order.

    Raises the first error, when none is under way any more.
    """
    todo = list(enumerate(items))
    answers: dict[int, Answer] = {}
    problems: list[Exception] = []

    def work() -> None:
        with suppress(IndexError):
            while not problems:
                number, item = todo.pop()
                try:
                    answers[number] = do(item)
                except Exception as error:  # noqa: BLE001 - raised again in the waiting thread
                    problems.append(error)

    threads = [Thread(target=work, daemon=True) for _ in range(min(AT_ONCE, len(todo)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    return [answers[number] for number in sorted(answers)]


@contextmanager
def within_deadline(seconds: float | None, end: Callable[[], None]) -> Iterator[None]:
    """Call `end` after so many seconds, which makes the block fail. Raises TimeoutError then."""
    late = Event()

    def too_late() -> None:
        late.set()
        end()

    timer = Timer(seconds or 0.0, too_late)
    timer.daemon = True
    if seconds is not None:
        timer.start()
    try:
        yield
    except Exception:
        if late.is_set():
            raise TimeoutError from None
        raise
    finally:
        timer.cancel()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Run a block that Ctrl-C does not interrupt; raises KeyboardInterrupt at its end if it was pressed."""
    pressed: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, lambda number, _frame: pressed.append(number))
    except ValueError:  # another thread than the main one is never interrupted
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt
