"""Mistakes in a spec: each is refused with file and line, in Python's words, and with the line to write instead."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from gapless import machine_for
from gapless.spec.reading.complaints import INSTEAD, PYTHON
from gapless.spec.reading.functions import SPOKEN
from gapless.traces.specs import load
from tests.support.command_line import gapless

RETRIES = '''"""A queue whose messages are taken by receipt."""

from dataclasses import dataclass
from enum import IntEnum
from typing import NewType

from gapless.spec.language import Bound, Map, all_between, implies, replace, require

Message = NewType("Message", int)
LIMIT = 3


class Status(IntEnum):
    """The stages of a message."""

    READY = 0
    TAKEN = 1


@dataclass(frozen=True, slots=True)
class State:
    """The queue."""

    sent: int = 0
    open: bool = False
    status: Map[Message, Status] = Map(Status.READY)


def send(s: State, message: Message) -> State:
    """A message is added."""
    require(message == s.sent, "messages-are-counted", because="messages are counted", otherwise="one is lost")
    return replace(s, sent=s.sent + 1)


def take(s: State, message: Message) -> State:
    """A message is taken."""
    require(message < s.sent, "message-was-sent", because="the message was sent", otherwise="a ghost is taken")
    require(0 <= message, "message-is-a-number", because="the message is a number", otherwise="a ghost is taken")
    return replace(s, status=s.status.set(message, Status.TAKEN))


def counts_up(s: State) -> bool:
    """Otherwise a count is wrong."""
    return 0 <= s.sent


def no_less(s: State, after: State) -> bool:
    """Otherwise a message is gone."""
    return s.sent <= after.sent


def can_send(s: State) -> bool:
    """Otherwise the queue is stuck."""
    return True


INITIAL = State()
ACTIONS = (send, take)
INVARIANTS = (counts_up,)
STEP_PROPERTIES = (no_less,)
ENABLED = (can_send,)
BOUND = Bound(says="two messages", within=lambda s: s.sent <= 2, numbers={"message": range(3)})
'''
MISTAKES = tomllib.loads(Path(__file__).with_name("spec_mistakes.toml").read_text(encoding="utf-8"))


def mistaken(mistake: str, folder: Path) -> list[str]:
    """Write the spec with this mistake into a folder; returns the complaints that it deserves."""
    old, new, *complaints = MISTAKES[mistake]
    assert old in RETRIES
    (folder / "retries.py").write_text(RETRIES.replace(old, new, 1) if old else new, encoding="utf-8")
    return [f"retries.py:{complaint}" for complaint in complaints]


NODES = re.compile(rf"\b({'|'.join(node.__name__ for node in INSTEAD)})\b")


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_refused_with_its_line_and_what_to_write(
    mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    complaints = mistaken(mistake, tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="retries") as refused:
        load("retries.py")
    lines = str(refused.value).splitlines()
    assert lines == complaints
    for line in lines:
        assert re.search(r": (write|did you mean|leave|give|correct) ", line), "it says what to do"
        assert not NODES.search(re.sub(r"`.*?`", "", line)), "a name of Python's syntax tree"


ASKED = {
    "accepts(send, s)": "`accepts(send, s)`: write each argument of `send`: `accepts(send, s, message)`",
    "accepts(send, s, 0, 1)": "`accepts(send, s, 0, 1)`: write each argument of `send`: `accepts(send, s, message)`",
    "implies(accepts(send, s, 0), accepts(take, send(s, 0), 0))": "`send(s, 0)` in `implies(…)`, which looks at both "
    "of its sides: write `not accepts(send, s, 0) or …`: what follows is looked at where it is accepted",
    "implies(s.open, stored(s) == 0)": "`stored(s)` in `implies(…)`, which looks at both of its sides: write `not "
    "accepts(stored, s) or …`: what follows is looked at where it is accepted",
    "implies(s.open, not accepts(send, s, 0) or accepts(take, send(s, 0), 0))": "",
}
STORED = """def stored(s: State) -> int:
    require(s.open, "it-is-open", because="it is open", otherwise="it is closed")
    return s.sent


def open_it(s: State) -> State:
    return replace(s, sent=stored(s))


def can_send"""


@pytest.mark.parametrize("asked", ASKED)
def test_a_property_asks_whether_a_step_is_accepted_before_it_takes_it(asked: str, tmp_path: Path) -> None:
    text = (
        RETRIES.replace("all_between, ", "accepts, ")
        .replace("def can_send", STORED)
        .replace("(send, take", "(send, open_it, take")
    )
    (tmp_path / "retries.py").write_text(text.replace("return True", f"return {asked}"), encoding="utf-8")
    if not ASKED[asked]:
        assert load(tmp_path / "retries.py").name == "retries"
        return
    with pytest.raises(ValueError, match="retries") as refused:
        load(tmp_path / "retries.py")
    assert str(refused.value).partition(": ")[2] == ASKED[asked]


COMMANDS = (
    *(("prove",), ("explore",), ("audit",), ("steps",), ("rules", "--spec"), ("check", "events.ndjson", "--spec")),
    *(("schema", "events", "--spec"), ("explain", "events.ndjson", "--trace", "a", "--spec")),
)


@pytest.mark.parametrize("mistake", ["no slots", "empty", "top raises", "= for =="])
def test_every_command_refuses_it_in_the_same_words_and_once(
    mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (complaint,) = mistaken(mistake, tmp_path)
    monkeypatch.chdir(tmp_path)
    Path("events.ndjson").write_text('{"schema":"gapless-events","version":1}\n', encoding="utf-8")
    for command in COMMANDS:
        ran = gapless(*command, "retries.py")
        assert (ran.exit_code, ran.stdout, ran.stderr) == (2, "", f"gapless: {complaint}\n"), command
    with pytest.raises(ValueError, match=re.escape(complaint)):
        machine_for("retries.py", object)


def test_every_part_of_python_has_a_name_and_a_remedy() -> None:
    kinds = (ast.stmt, ast.expr, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)
    parts = {node for kind in kinds for node in kind.__subclasses__() if node.__module__ == "ast" and node.__doc__}
    foreign = parts - {*SPOKEN}
    missing = {node.__name__ for node in foreign if node not in PYTHON or node not in INSTEAD}
    assert not missing - {"TypeAlias", "TemplateStr", "Interpolation"}  # of later Pythons, shown as they are written


def test_a_spec_in_order_is_read_with_a_byte_order_mark_too(tmp_path: Path) -> None:
    (tmp_path / "retries.py").write_text(f"\ufeff{RETRIES}", encoding="utf-8")
    assert [*load(tmp_path / "retries.py").actions] == ["send", "take"]


def test_a_file_in_another_encoding_is_refused_with_the_line(tmp_path: Path) -> None:
    (tmp_path / "retries.py").write_bytes(RETRIES.replace("LIMIT = 3", "LIMIT = 3  # für").encode("latin-1"))
    with pytest.raises(ValueError, match=r"retries.py:10: not text in UTF-8 \(.*\): save the file as UTF-8"):
        load(tmp_path / "retries.py")
