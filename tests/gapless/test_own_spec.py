"""A user's spec: by its file or module, with the same readers as ours; and what is refused, with file and line."""

import json
import pickle
import re
from pathlib import Path

import pytest

from gapless.spec.catalog import SPECS
from gapless.spec.reading.vocabulary import ForeignWords
from gapless.traces.specs import NoSpec, load, together
from tests.support.command_line import ROOT, gapless, gapless_process

LEASE = (ROOT / "examples/lease.py").read_text(encoding="utf-8")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of a user's, with a lease in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "lease.py").write_text(LEASE, encoding="utf-8")
    return tmp_path


def without(text: str, begin: str, end: str) -> str:
    """The text without the first stretch that begins and ends so."""
    at = text.index(begin)
    return text[:at] + text[text.index(end, at) + len(end) :]


WEAK = without(LEASE, "    require(\n        s.seen <= token", "    )\n")
"""The storage takes every write."""


# --- Loading ------------------------------------------------------------------------------------------------


def test_a_spec_is_found_by_its_name_its_file_and_its_module(here: Path) -> None:
    (here / "models").mkdir()
    (here / "models/lock.py").write_text(LEASE, encoding="utf-8")
    assert load("queue") is SPECS["queue"]
    assert load(ROOT / "spec/queue.py") is load("gapless.spec.queue") is SPECS["queue"]
    assert load("lease.py") is load(Path("lease.py"))
    assert [load(named).name for named in ("lease.py", "lease", "models/lock.py", "models.lock")] == [
        *("lease", "lease", "lock", "lock")
    ]
    assert load("models.lock").called == "models/lock.py"


def test_a_spec_is_known_by_its_text(here: Path) -> None:
    """Whoever changes a file, or has two of one name, has two specs, in one process too."""
    before = load("lease.py")
    (here / "lease.py").write_text(WEAK, encoding="utf-8")
    after = load("lease.py")
    assert "lease/token-is-no-older-than-the-last-write" in before.rules
    assert "lease/token-is-no-older-than-the-last-write" not in after.rules
    (here / "lease.py").unlink()  # to a worker, elsewhere, it travels as text
    for spec in (before, after):
        assert pickle.loads(pickle.dumps(spec)) is spec  # noqa: S301 - our own
        state = spec.actions["grant"](spec.initial, 0, 1)
        assert pickle.loads(pickle.dumps(state)) == state  # noqa: S301 - our own


def test_two_specs_of_one_name_are_not_told_apart_in_events(here: Path) -> None:
    (here / "other").mkdir()
    (here / "other/lease.py").write_text(WEAK, encoding="utf-8")
    assert len(together(["lease.py", "lease", "queue", "queue"])) == 2
    with pytest.raises(NoSpec, match=re.escape("other/lease.py: lease.py has a spec of this name, too")):
        together(["lease.py", "other/lease.py"])


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("lease.py", "def grant(s:\n", "lease.py:1: '(' was never closed"),
        ("lease.py", "\0", "lease.py:1: "),
        (
            "lease.py",
            "",
            "lease.py:1: is no spec: it has no INITIAL and no ACTIONS and no INVARIANTS and no class State",
        ),
        ("lease.py", LEASE.replace("ACTIONS =", "STEPS ="), "lease.py:1: is no spec: it has no ACTIONS"),
        ("lease.py", LEASE.replace("State()\n", "State(nothing=1)\n"), "TypeError: State.__init__() got an unexpected"),
        (
            "lease.py",
            LEASE.replace("INITIAL = State()", "INITIAL = 3"),
            "lease.py:1: INITIAL is 3: say INITIAL = State()",
        ),
        ("lease.py", LEASE.replace("ACTIONS = (grant, expire, write)", "ACTIONS = ()"), "is in no tuple"),
        ("lease.py", LEASE.replace("range(5)", '"a"'), "lease.py:1: BOUND is Bound("),
        ("lease.py", LEASE.replace("range(5)", "range(1 // 0)"), "lease.py:112: ZeroDivisionError: "),
        (
            "lease.py",
            LEASE.replace("last: Token = Token(0)", "last: Token = Map(Token(0))"),
            "State.last begins as Map",
        ),
        (
            "lease.py",
            LEASE.replace("def expire(", "def end(").replace("expire,", "end,"),
            "of which that action is made",
        ),
        ("queue.py", LEASE, "queue.py: queue is the name of one of our specs"),
        ("my-lease.py", LEASE, "my-lease.py: 'my-lease' cannot be the name of a spec"),
    ],
)
def test_a_file_that_is_no_spec_is_told_with_its_line(here: Path, name: str, text: str, says: str) -> None:
    (here / name).write_text(text, encoding="utf-8")
    for command in ("prove", "explore"):
        ran = gapless(command, name)
        assert (ran.exit_code, says in ran.stderr, ran.stdout) == (2, True, ""), ran.output


@pytest.mark.parametrize(
    ("named", "says"),
    [
        ("nothing.py", "nothing.py: cannot be read (No such file or directory)"),
        ("folder.py", "folder.py: cannot be read (Is a directory)"),
        ("bytes.py", "bytes.py: is no text in UTF-8"),
        ("nobody.nothing", "there is no spec 'nobody.nothing': choose among broker, checkpoint"),
        ("", "there is no spec ''"),
    ],
)
def test_a_file_that_cannot_be_read_is_told(here: Path, named: str, says: str) -> None:
    (here / "folder.py").mkdir()
    (here / "bytes.py").write_bytes(b"\xff")
    ran = gapless("prove", named)
    assert (ran.exit_code, says in ran.stderr) == (2, True), ran.output


# --- What a sceptic tries -----------------------------------------------------------------------------------

FOREIGN = {
    "is": (LEASE.replace("s.holder == NOBODY,", "s.holder is NOBODY,"), "`is`", "`==` and `!=`"),
    "isinstance": (
        LEASE.replace("0 <= worker,", "isinstance(worker, int),"),
        "`isinstance(…)`",
        "a field of the state",
    ),
    "a float": (LEASE.replace("0 <= worker,", "-0.5 <= worker,"), "`0.5`", "a number or a `Map`"),
    "a try": (
        LEASE.replace("    return replace(s, seen=token)", "    try:\n        return s\n    finally:\n        pass"),
        *("`Try`", "`require("),
    ),
    "a number for truth": (LEASE.replace("s.seen <= token,", "s.seen,"), "`s.seen` as a truth value", "`s.seen != 0`"),
    "a default": (
        LEASE.replace("token: Token) -> State", "token: Token = 1) -> State"),
        "`1` as a default",
        "each argument",
    ),
    "a forgotten action": (LEASE.replace("expire, write)", "expire)"), "`write`, which is in no tuple", "`ACTIONS`"),
    "a forgotten invariant": (
        LEASE.replace("what_was_written_was_allowed)", ")"),
        *("`what_was_written_was_allowed`, which is in no tuple", "`INVARIANTS`"),
    ),
    "a list at the top": (LEASE.replace("NOBODY = Worker(-1)", "NOBODY = Worker(-1)\nSEEN = []"), "`[]`", "a number"),
    "another file": (
        LEASE.replace("from typing", "from os import path\nfrom typing"),
        "`from os import path`",
        "a word",
    ),
}


@pytest.mark.parametrize("command", ["prove", "explore"])
@pytest.mark.parametrize("foreign", FOREIGN)
def test_what_readers_cannot_see_is_refused_with_line_and_word(here: Path, foreign: str, command: str) -> None:
    text, word, instead = FOREIGN[foreign]
    assert text != LEASE
    (here / "lease.py").write_text(text, encoding="utf-8")
    ran = gapless(command, "lease.py")
    assert (ran.exit_code, ran.stdout) == (2, ""), ran.output
    line = next(line for line in ran.stderr.splitlines() if word in line)
    assert re.search(r"lease\.py:\d+: ", line)
    assert instead in line.partition(": say ")[2]


def test_nothing_of_a_file_is_run_before_it_is_read(here: Path) -> None:
    (here / "lease.py").write_text(f"{LEASE}\nopen('gone', 'w')\n", encoding="utf-8")
    with pytest.raises(ForeignWords):
        load("lease.py")
    assert not (here / "gone").exists()


# --- Proofs and exploration ---------------------------------------------------------------------------------


def test_a_spec_of_ones_own_is_proved_and_remembered(here: Path) -> None:
    ran = gapless_process("prove", here / "lease.py", "--json", here / "ledger.json")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = json.loads((here / "ledger.json").read_text())
    assert {(one["spec"], one["result"]) for one in found["obligations"]} == {("lease", "proved")}
    assert {"writes_never_go_back", "the_kernel_is_the_spec", "can_happen"} <= {
        one["invariant"] for one in found["obligations"]
    }
    (here / "lease.py").write_text(WEAK, encoding="utf-8")
    ran = gapless_process("prove", here / "lease.py")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "lease: write does not keep: writes never go back." in ran.stdout
    assert f"Again: gapless prove {here / 'lease.py'}" in ran.stdout


def test_specs_by_name_and_by_file_are_explored_together(here: Path) -> None:
    ran = gapless("explore", "lease.py", "ring", "--graph", "both.html")
    assert ran.exit_code == 0, ran.output
    assert "two workers, three" in " ".join(ran.stdout.split())
    assert "lease" in (here / "both.html").read_text()


def test_what_is_broken_is_told_by_the_shortest_way(here: Path) -> None:
    (here / "lease.py").write_text(WEAK, encoding="utf-8")
    ran = gapless("explore", "lease.py", "--json", "found.json")
    assert ran.exit_code == 1
    assert "lease breaks writes_never_go_back after 5 steps." in ran.stdout
    assert "Again: gapless explore lease.py" in ran.stdout
    assert json.loads((here / "found.json").read_text())["explored"][0]["result"] == "breaks"


def test_a_bound_is_found_where_a_spec_has_none(here: Path) -> None:
    """As wide as it pays: all numbers that small, flags, and members of enums."""
    bare = without(LEASE, "BOUND = ", ")\n")
    for text, code in ((bare, 0), (bare.replace("s.seen <= token,", "s.seen <= token + 1,"), 1)):
        (here / "lease.py").write_text(text.replace("Bound, ", ""), encoding="utf-8")
        ran = gapless("explore", "lease.py", "--json", "found.json")
        assert ran.exit_code == code, ran.output
        assert (
            "found by itself: numbers from -1 to "
            in json.loads((here / "found.json").read_text())["explored"][0]["bound"]
        )


def test_what_a_bound_or_a_step_raises_is_told_with_its_line(here: Path) -> None:
    (here / "lease.py").write_text(LEASE.replace("s.last <= 3", "s.lost <= 3"), encoding="utf-8")
    ran = gapless("explore", "lease.py")
    assert ran.exit_code == 2
    assert re.search(r"gapless: lease\.py:\d+: AttributeError: ", ran.stderr)
