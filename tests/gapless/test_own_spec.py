"""A user's spec: by its file or module, with the same readers as ours; and what is refused, with file and line."""

import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

from gapless import UsageError, check
from gapless.spec.catalog import SPECS
from gapless.spec.reading.vocabulary import ForeignWords
from gapless.traces.specs import NoSpec, load, loaded
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


RANGE = LEASE[: LEASE.index("range(5)")].count("\n") + 1
EVENTS = (ROOT / "examples/lease.ndjson").read_text(encoding="utf-8")


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
    """A changed file is another spec, in the same process too, and so is another file of the same name."""
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


def test_two_specs_of_one_name_are_not_distinguished_in_events(here: Path) -> None:
    (here / "other").mkdir()
    (here / "other/lease.py").write_text(WEAK, encoding="utf-8")
    assert len(loaded(["lease.py", "lease", "queue", "queue"])) == 2
    with pytest.raises(NoSpec, match=re.escape("other/lease.py: lease.py has a spec of this name, too")):
        loaded(["lease.py", "other/lease.py"])


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("lease.py", "def grant(s:\n", "lease.py:1: not Python: '(' was never closed: correct `def grant(s:`"),
        ("lease.py", "\0", "lease.py:1: "),
        (
            "lease.py",
            "",
            "lease.py:1: an empty file: write `class State` with its fields, `INITIAL = State()`, `ACTIONS",
        ),
        ("lease.py", LEASE.replace("ACTIONS =", "STEPS ="), "lease.py:1: not a spec: write `ACTIONS = (…,)`"),
        (
            "lease.py",
            LEASE.replace("State()\n", "State(nothing=1)\n"),
            "`State(nothing=…)`: write a field of the state: taken,",
        ),
        (
            "lease.py",
            LEASE.replace("INITIAL = State()", "INITIAL = 3"),
            ": INITIAL is `3`: write `INITIAL = State()`",
        ),
        (
            "lease.py",
            LEASE.replace("ACTIONS = (grant, expire, write)", "ACTIONS = ()"),
            "`ACTIONS = ()`: write the steps into it",
        ),
        ("lease.py", LEASE.replace("range(5)", '"a"'), ": BOUND has other values: write `Bound(says="),
        (
            "lease.py",
            LEASE.replace("range(5)", "range(1 // 0)"),
            f"lease.py:{RANGE}: this line raises ZeroDivisionError: ",
        ),
        (
            "lease.py",
            LEASE.replace("last: Token = Token(0)", "last: Token = Map(Token(0))"),
            "State.last begins as a Map: write a value of its type",
        ),
        (
            "lease.py",
            LEASE.replace("expire", "end"),
            "there is a step end, and AT_REST makes another",
        ),
        ("queue.py", LEASE, "queue.py: queue is the name of one of our specs"),
        ("my-lease.py", LEASE, "my-lease.py: 'my-lease' cannot be the name of a spec"),
    ],
)
def test_a_file_that_is_no_spec_is_reported_with_its_line(here: Path, name: str, text: str, says: str) -> None:
    (here / name).write_text(text, encoding="utf-8")
    for command in ("prove", "explore"):
        ran = gapless(command, name)
        assert (ran.exit_code, says in ran.stderr, ran.stdout) == (2, True, ""), ran.output


@pytest.mark.parametrize(
    ("named", "says"),
    [
        ("nothing.py", "nothing.py: no such file in "),
        ("folder.py", "folder.py: a folder: name each file in it"),
        ("bytes.py", "bytes.py:1: not text in UTF-8"),
        ("nobody.nothing", "there is no spec 'nobody.nothing': choose among aborted_index, broker, check_service"),
        ("", "there is no spec ''"),
    ],
)
def test_a_file_that_cannot_be_read_is_reported(here: Path, named: str, says: str) -> None:
    (here / "folder.py").mkdir()
    (here / "bytes.py").write_bytes(b"\xff")
    ran = gapless("prove", named)
    assert (ran.exit_code, says in ran.stderr) == (2, True), ran.output


# --- What a sceptic tries -----------------------------------------------------------------------------------

FOREIGN = {
    "is": (
        LEASE.replace("        not s.taken,", "        s.taken is not True,"),
        "`s.taken is not True`",
        "`not s.taken`",
    ),
    "isinstance": (
        LEASE.replace("        not s.taken,", "        isinstance(worker, int),"),
        "`isinstance(…)`",
        "a field that tells them apart",
    ),
    "a float": (LEASE.replace("        not s.taken,", "        -0.5 <= worker,"), "`0.5`", "a whole number"),
    "a try": (
        LEASE.replace("    return replace(s, seen=token)", "    try:\n        return s\n    finally:\n        pass"),
        *("`try`", "`require("),
    ),
    "a number for truth": (LEASE.replace("s.seen <= token,", "s.seen,"), "`s.seen` as a truth value", "`s.seen != 0`"),
    "a default": (
        LEASE.replace("token: Token) -> State", "token: Token = 1) -> State"),
        "`1` as a default",
        "each argument",
    ),
    "a forgotten action": (LEASE.replace("expire, write)", "expire)"), "`write`, which states rules", "`ACTIONS`"),
    "a forgotten invariant": (
        LEASE.replace("what_was_written_was_allowed)", ")"),
        *("`what_was_written_was_allowed`, which is in no tuple", "`INVARIANTS`"),
    ),
    "a list at the top": (LEASE.replace("INITIAL =", "SEEN = []\nINITIAL ="), "`[]`", "a number"),
    "another file": (
        LEASE.replace("from typing", "from os import path\nfrom typing"),
        "`from os import path`",
        "put what else is needed into this file",
    ),
    "a field without a type": (
        LEASE.replace("taken: bool = False", "taken = False"),
        *("`taken = False", "`taken: int = …`"),
    ),
    "one id for two rules": (
        LEASE.replace("token-is-no-older-than-the-last-write", "token-was-given-to-the-worker"),
        *("`'token-was-given-to-the-worker'` with", "another id"),
    ),
}


@pytest.mark.parametrize("command", [("prove",), ("explore",), ("check", "lease.ndjson", "--spec")])
@pytest.mark.parametrize("foreign", FOREIGN)
def test_what_readers_cannot_see_is_refused_with_line_and_word(
    here: Path, foreign: str, command: tuple[str, ...]
) -> None:
    text, word, instead = FOREIGN[foreign]
    assert text != LEASE
    (here / "lease.py").write_text(text, encoding="utf-8")
    (here / "lease.ndjson").write_text(EVENTS, encoding="utf-8")
    ran = gapless(*command, "lease.py")
    assert (ran.exit_code, ran.stdout) == (2, ""), ran.output
    line = next(line for line in ran.stderr.splitlines() if word in line)
    assert re.search(r"lease\.py:\d+: ", line)
    assert instead in line.partition(": write ")[2]


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
    weak = here / "my specs" / "lease.py"
    weak.parent.mkdir()
    weak.write_text(WEAK, encoding="utf-8")
    ran = gapless_process("prove", weak)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert 'lease: write breaks the property "writes never go back".' in ran.stdout
    assert f"Again: gapless prove '{weak}'" in ran.stdout


def test_specs_by_name_and_by_file_are_explored_loaded(here: Path) -> None:
    ran = gapless("explore", "lease.py", "ring", "--graph", "both.html")
    assert ran.exit_code == 0, ran.output
    assert "two workers, three" in " ".join(ran.stdout.split())
    assert "lease" in (here / "both.html").read_text()


def test_what_is_broken_is_reported_by_the_shortest_way(here: Path) -> None:
    (here / "a b").mkdir()
    (here / "a b" / "lease.py").write_text(WEAK, encoding="utf-8")
    ran = gapless("explore", "a b/lease.py", "--json", "found.json")
    assert ran.exit_code == 1
    assert "lease breaks writes_never_go_back after 5 steps." in ran.stdout
    assert "Again: gapless explore 'a b/lease.py'" in ran.stdout
    assert json.loads((here / "found.json").read_text())["explored"][0]["result"] == "breaks"


def test_a_bound_is_found_where_a_spec_has_none(here: Path) -> None:
    """A bound as wide as it pays: all small numbers, flags, and members of enums."""
    bare = without(LEASE, "BOUND = ", ")\n")
    for text, code in ((bare, 0), (bare.replace("s.seen <= token,", "s.seen <= token + 1,"), 1)):
        (here / "lease.py").write_text(text.replace("Bound, ", ""), encoding="utf-8")
        ran = gapless("explore", "lease.py", "--json", "found.json")
        assert ran.exit_code == code, ran.output
        assert (
            "found by itself: numbers from -1 to "
            in json.loads((here / "found.json").read_text())["explored"][0]["bound"]
        )


def test_what_a_bound_or_a_step_raises_is_reported_with_its_line(here: Path) -> None:
    (here / "lease.py").write_text(LEASE.replace("s.last <= 3", "s.last <= 3 // s.last"), encoding="utf-8")
    ran = gapless("explore", "lease.py")
    assert ran.exit_code == 2
    assert re.search(r"gapless: lease\.py:\d+: ZeroDivisionError: ", ran.stderr)


@pytest.mark.parametrize("many", ["10**12", "10**30"])
def test_an_endless_bound_is_refused_and_prevents_no_check(many: str, here: Path) -> None:
    """Its numbers were listed one by one, whatever the question."""
    (here / "lease.py").write_text(LEASE.replace("range(5)", f"range({many})"), encoding="utf-8")
    (here / "lease.ndjson").write_text(EVENTS, encoding="utf-8")
    assert check("lease.ndjson", specs=["lease.py"]).verdict == "departs"
    ran = gapless("explore", "lease.py")
    assert ran.exit_code == 2
    assert "the bound of lease tries grant with more than 16,777,216 combinations" in ran.stderr


# --- Traces -------------------------------------------------------------------------------------------------

NO_OLDER = "lease/token-is-no-older-than-the-last-write"


def event_lines(*events: tuple[str, dict[str, int]], trace: str = "orders", **more: Any) -> str:
    """Format events of one lease, a line each; `more` are keys of the last."""
    lines = [
        {"source": "x", "spec": "lease", "trace": trace, "position": at, "action": action, "args": args}
        for at, (action, args) in enumerate(events)
    ]
    lines[-1] |= more
    return "".join(f"{json.dumps(line)}\n" for line in lines)


HEAD = '{"schema":"gapless-events","version":1}\n'
LATE: tuple[tuple[str, dict[str, int]], ...] = (
    *(("grant", {"worker": 0, "token": 1}), ("expire", {}), ("grant", {"worker": 1, "token": 2})),
    *(("write", {"worker": 1, "token": 2}), ("write", {"worker": 0, "token": 1})),
)


def test_events_of_a_spec_of_ones_own_are_judged(here: Path) -> None:
    (here / "lease.ndjson").write_text(EVENTS, encoding="utf-8")
    report = check("lease.ndjson", specs=["lease.py"])
    assert report.verdict == "departs"
    (finding,) = report.findings
    assert (finding.rule, finding.trace, finding.here) == (NO_OLDER, "bills", {"token": 1, "seen": 2})
    assert finding.story[-1] == "Again: gapless explain lease.ndjson --trace bills --spec lease.py"
    assert report.coverage["lease.write"] == 3
    assert report.counts.by_spec == {"lease": 10}
    assert check("lease.ndjson", specs=["lease"], ignore=[NO_OLDER]).verdict == "conforms"
    assert check("lease.ndjson", specs=["lease"], only=["lease/lease-is-free"]).verdict == "conforms"
    assert "spec is 'lease'" in check("lease.ndjson").sources[0].reasons[0]
    with pytest.raises(UsageError, match="no such rule"):
        check("lease.ndjson", ignore=[NO_OLDER])
    with pytest.raises(UsageError, match="there is no spec 'nothing'"):
        check("lease.ndjson", specs=["nothing"])


@pytest.mark.parametrize(
    ("events", "more", "rule"),
    [
        (LATE[:4], {"saw": {"seen": 2}}, None),
        (LATE[:4], {"saw": {"seen": 3}}, "lease/what-the-broker-saw-is-what-its-steps-made"),
        (LATE, {"outcome": "refused"}, None),
        (LATE[:4], {"outcome": "refused"}, "lease/broker-refuses-only-what-is-not-allowed"),
        (LATE, {"outcome": "unknown"}, None),
        ((*LATE[:4], ("end", {})), {}, "lease/no-worker-has-the-lease"),
        ((*LATE[:4], ("expire", {}), ("end", {})), {}, None),
        ((("grant", {"worker": 2**62, "token": 1}), ("write", {"worker": 2**62, "token": 2})), {}, None),
    ],
)
def test_every_way_to_replay_knows_the_spec(
    here: Path, events: tuple[Any, ...], more: dict[str, Any], rule: str | None
) -> None:
    """The kernel where it can, exact replay where it must; the last is beyond what a kernel can decide."""
    (here / "lease.ndjson").write_text(HEAD + event_lines(*events, **more), encoding="utf-8")
    report = check("lease.ndjson", specs=["lease.py"])
    wanted = rule or ("lease/token-was-given-to-the-worker" if events[0][1]["worker"] > 1 else None)
    assert [finding.rule for finding in report.findings] == [wanted] * (wanted is not None)


def test_two_specs_of_one_name_in_one_process_are_each_right(here: Path) -> None:
    (here / "weak").mkdir()
    (here / "weak/lease.py").write_text(WEAK, encoding="utf-8")
    (here / "lease.ndjson").write_text(HEAD + event_lines(*LATE), encoding="utf-8")
    verdicts = [check("lease.ndjson", specs=[spec]).verdict for spec in ("lease.py", "weak/lease.py") * 2]
    assert verdicts == ["departs", "conforms"] * 2
    with pytest.raises(UsageError, match="has a spec of this name, too"):
        check("lease.ndjson", specs=["lease.py", "weak/lease.py"])


def test_workers_are_reported_of_the_spec(here: Path) -> None:
    """In several processes, and where traces span several stretches."""
    traces = [event_lines(*LATE[: 4 + number % 2], trace=f"t{number}").splitlines() for number in range(40)]
    mixed = [line for lines in zip(*(trace[:4] for trace in traces), strict=True) for line in lines]
    lines = [*mixed, *(trace[4] for trace in traces if len(trace) > 4)]
    (here / "lease.ndjson").write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")
    alone = check("lease.ndjson", specs=["lease.py"])
    several = check("lease.ndjson", specs=["lease.py"], jobs=2, split=2000)
    assert alone.findings[0].count == 20
    assert several.model_dump(exclude={"seconds"}) == alone.model_dump(exclude={"seconds"})


def test_deviations_of_ones_own_are_anomalies_under_their_profile(here: Path) -> None:
    deviating = LEASE.replace("import Bound, Map, accepts,", "import Bound, Deviation, Map, accepts, applies,").replace(
        "INITIAL = State()",
        """def write_late(s: State, worker: Worker, token: Token) -> State:
    applies(token < s.seen)
    return s


DEVIATIONS = (Deviation(write_late, write, frozenset({"pulsar"}), "our ticket 17"),)
INITIAL = State()""",
    )
    (here / "lease.py").write_text(deviating, encoding="utf-8")
    (here / "lease.ndjson").write_text(HEAD + event_lines(*LATE), encoding="utf-8")
    assert check("lease.ndjson", specs=["lease.py"]).verdict == "departs"
    report = check("lease.ndjson", specs=["lease.py"], profile="pulsar")
    assert (report.verdict, report.anomalies) == ("conforms", {"write_late": 1})
    assert report.findings[0].message == "write late (our ticket 17)"


@pytest.mark.usefixtures("here")
def test_rules_of_ones_own_are_listed() -> None:
    ran = gapless("rules", "--spec", "lease.py")
    assert ran.exit_code == 0
    assert "lease/lease-is-free\n  need of grant: the lease is free\n" in ran.stdout
    assert "source: lease.py" in ran.stdout
    assert "gapless prove lease.py" in ran.stdout
    assert "queue/" not in ran.stdout


def test_a_property_without_a_docstring_is_listed_without_an_empty_line(tmp_path: Path) -> None:
    text = (ROOT / "examples/lease.py").read_text(encoding="utf-8")
    (tmp_path / "bare.py").write_text(re.sub(r'    """Otherwise.*"""\n', "", text), encoding="utf-8")
    ran = gapless("rules", "--spec", tmp_path / "bare.py")
    assert ran.exit_code == 0
    assert "otherwise: \n" not in ran.stdout
    assert re.search("  step property: writes never go back\n  established by: ", ran.stdout)


# --- The audit ----------------------------------------------------------------------------------------------


def test_an_audit_tells_where_properties_are_thin(here: Path) -> None:
    ran = gapless("audit", "lease.py", "--json", "audit.json", "--jobs", "1")
    assert ran.exit_code == 0, ran.output
    assert "lease: 5 needs: load-bearing 4, judges the event alone 1." in ran.stdout
    assert (
        "No property catches these, only a comparison with the spec as it is; a property after → would:" in ran.stdout
    )
    write = ran.stdout.partition("  write, token-was-given-to-the-worker:\n")[2]
    assert "token == s.tokens[worker] → token <= s.tokens[worker]\n      → ENABLED: accepts(write, …) at this" in write
    assert "lease: enough: properties catch 19 of 21 faults, and 80% are." in ran.stdout
    found = json.loads((here / "audit.json").read_text())["audits"][0]
    (free,) = (need for need in found["needs"] if need["rule"] == "lease-is-free")
    assert free["says"] == ["a taken lease is not given again"]
    fates = {fault["says"]: fault["fate"] for fault in found["faults"]}
    assert fates["without token-is-no-older-than-the-last-write"] == "a property breaks"
    assert fates["token == s.tokens[worker] → token <= s.tokens[worker]"] == "only a comparison shows it"


def test_an_audit_tells_what_nothing_holds_up_and_what_is_not_noticed(here: Path) -> None:
    """Without the property, the need is not needed; without states to compare in, its absence is not noticed."""
    text = without(LEASE, "    a_taken_lease_is_not_given_again,\n", "    a_granted_lease_is_taken,\n")
    text = without(text, "def a_taken_lease_is_not_given_again", "\n\n\n")
    text = without(text, "def a_granted_lease_is_taken", "\n\n\n").replace("s.last <= 3", "s.last < 0")
    (here / "lease.py").write_text(text, encoding="utf-8")
    ran = gapless("audit", "lease.py", "--jobs", "1")
    assert ran.exit_code == 1, ran.output
    assert "  grant: nothing breaks without lease/lease-is-free: say what goes wrong then, or drop it\n" in ran.stdout
    assert "No check notices these; a property after → would:" in ran.stdout
    assert "  grant, its effect:\n" in ran.stdout
    assert "forgets taken=True\n      → a step property: what grant makes of `taken`\n" in ran.stdout
    assert "lease: not enough: properties catch" in ran.stdout


@pytest.mark.parametrize("text", [WEAK, LEASE.replace("not accepts(grant, s, worker, token) or", "False or")])
def test_a_spec_that_is_not_proved_is_not_audited(here: Path, text: str) -> None:
    """It is refuted, or cannot be read: then every fault breaks something, and that says nothing."""
    (here / "lease.py").write_text(text, encoding="utf-8")
    ran = gapless("audit", "lease.py", "--jobs", "1")
    assert (ran.exit_code, ran.stdout) == (2, ""), ran.output
    assert "lease.py is not proved" in ran.stderr
    assert gapless("audit", "nothing").exit_code == 2


def test_what_departs_at_its_first_step_was_checked(here: Path) -> None:
    """A report that says that it departs does not say that nothing was checked."""
    header, first, *_ = EVENTS.splitlines()
    wrong = first.replace('"token":1', '"token":7')
    (here / "traces.ndjson").write_text(f"{header}\n{wrong}\n", encoding="utf-8")
    report = check("traces.ndjson", specs=["lease.py"])
    assert (report.verdict, report.sources[0].reasons) == ("departs", [])


def test_traces_are_counted_as_such_next_to_what_is_not_read(here: Path) -> None:
    """The last line did not count records and queues if one of several files was empty."""
    (here / "lease.ndjson").write_text(EVENTS, encoding="utf-8")
    (here / "empty.ndjson").touch()
    ran = gapless("check", "lease.ndjson", "empty.ndjson", "--spec", "lease.py")
    assert ran.stdout.splitlines()[-1].startswith("departs: 1 violation found. 2 traces read, 10 events checked in ")


@pytest.mark.parametrize("suffix", [".parquet", ".ndjson.zst"])
def test_events_of_a_spec_are_written_in_the_other_form(here: Path, suffix: str) -> None:
    (here / "lease.ndjson").write_text(EVENTS, encoding="utf-8")
    without = gapless("trace", "lease.ndjson", "--out", f"other{suffix}")
    assert (without.exit_code, "--spec FILE names one of yours" in without.stderr) == (2, True)
    ran = gapless("trace", "lease.ndjson", "--out", f"other{suffix}", "--spec", "lease.py")
    assert (ran.exit_code, ran.stdout) == (0, f"13 events in other{suffix}\n")
    original, same = (check(name, specs=["lease.py"]) for name in ("lease.ndjson", f"other{suffix}"))
    assert [(one.verdict, one.counts, len(one.violations)) for one in (original, same)] == 2 * [
        ("departs", original.counts, 1)
    ]
    wrong = gapless("trace", "lease.ndjson", "--out", f"other{suffix}", "--spec", "nothing")
    assert (wrong.exit_code, "there is no spec 'nothing'" in wrong.stderr) == (2, True)


def test_advice_leads_to_the_file_of_a_spec(here: Path) -> None:
    (here / "specs").mkdir()
    (here / "lease.py").rename(here / "specs/lease.py")
    (here / "lease.ndjson").write_text(EVENTS, encoding="utf-8")
    assert answer_to("check", "lease.ndjson").startswith(
        "gapless: lease.ndjson, line 2: spec is 'lease', which is none of ours: --spec FILE names one of yours ("
    )
    assert answer_to("prove", "spec/lease.py").endswith("(there is specs/lease.py)")
    assert answer_to("check", "lease.ndjson", "--spec", "specs/") == (
        "gapless: specs: a folder: name each file in it, such as specs/lease.py"
    )
    own = ("--spec", "specs/lease.py")
    assert answer_to("explain", "lease.ndjson", *own).startswith(
        "gapless: lease.ndjson: name the trace by --trace: nothing was checked; there: "
    )


def answer_to(*words: str) -> str:
    """The answer to a command that is refused."""
    ran = gapless(*words)
    assert ran.exit_code == 2
    return ran.stderr.strip()
