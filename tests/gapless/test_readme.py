"""The README: short, and its example does what it says."""

from pathlib import Path
from unittest import TestCase

import pytest

from gapless import check, machine_for
from gapless.properties.machines.lockstep import StepMismatch
from tests.support.command_line import ROOT, gapless
from tests.support.pages import blocks

README = ROOT / "README.md"
LINES = 120
HEADER = '{"schema":"gapless-events","version":1}\n'


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The spec of the example, as a file."""
    (source,) = (block.content for block in blocks(README) if block.info == "python inbox.py")
    path = tmp_path_factory.mktemp("readme") / "inbox.py"
    path.write_text(source, encoding="utf-8")
    return path


class Inbox:
    """A queue with two counters."""

    refused = (ValueError,)

    def __init__(self) -> None:
        self.sent = self.received = 0

    def send(self, number: int) -> None:
        """Take the next message."""
        if number != self.sent:
            raise ValueError(number)
        self.sent += 1

    def receive(self, number: int) -> None:
        """Hand out the next message."""
        if not self.received == number < self.sent:
            raise ValueError(number)
        self.received += 1

    def as_spec(self) -> dict[str, int]:
        """Both fields of the spec."""
        return {"sent": self.sent, "received": self.received}


class RepeatingInbox(Inbox):
    """The same, with a fault: it hands out old messages again."""

    def receive(self, number: int) -> None:
        """Hand out a message that was sent."""
        if not 0 <= number < self.sent:
            raise ValueError(number)
        self.received = max(self.received, number + 1)


def test_it_has_at_most_120_lines() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= LINES


@pytest.mark.parametrize(("command", "answer"), [("prove", "proved"), ("explore", "all hold")])
def test_the_spec_keeps_its_invariant(spec: Path, command: str, answer: str) -> None:
    done = gapless(command, str(spec))
    assert (done.exit_code, answer in done.stdout) == (0, True), done.output


def test_a_recording_is_judged_by_it(spec: Path) -> None:
    events = [("send", 0), ("receive", 0), ("receive", 0)]
    lines = [
        f'{{"source":"a","spec":"inbox","trace":"a","position":{at},"action":"{name}","args":{{"number":{number}}}}}\n'
        for at, (name, number) in enumerate(events)
    ]
    trace = spec.with_name("trace.ndjson")
    trace.write_text(HEADER + "".join(lines[:2]), encoding="utf-8")
    assert check([trace], specs=[spec]).verdict == "conforms"
    trace.write_text(HEADER + "".join(lines), encoding="utf-8")
    assert [found.rule for found in check([trace], specs=[spec]).violations] == ["inbox/in-order"]


def run(machine: type[TestCase]) -> None:
    machine("runTest").debug()


def test_a_class_is_driven_next_to_it(spec: Path) -> None:
    run(machine_for(str(spec), Inbox).TestCase)
    with pytest.raises(StepMismatch, match="messages come in order"):
        run(machine_for(str(spec), RepeatingInbox).TestCase)
