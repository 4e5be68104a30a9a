"""A spec file speaks the spec language: of what is outside it, readers would fail on some in silence."""

import ast
from functools import cache
from pathlib import Path

import pytest

from gapless.properties.exploration.search import explore
from gapless.properties.faults.guard_audit import audit
from gapless.spec.catalog import SPECS, Spec
from gapless.spec.language import Bound
from gapless.spec.reading.checking import checked
from gapless.spec.reading.declarations import SpecFile
from gapless.spec.reading.vocabulary import ForeignWords, foreign_words
from tests.house.project import Module, listed_at
from tests.house.spec_files import made_of, spec_files
from tests.support.toy_spec import TOY, toy


@cache
def spec_file(module: Module) -> SpecFile:
    """Parse a spec file of ours for the readers; its path does not matter here."""
    apart = {"deviations", "laws"}
    others = {f"gapless.spec.{other.path.stem}": other for other in spec_files() if other.floor not in apart}
    name = module.name.removeprefix("gapless.spec.")
    own = {other.name: other.name.rpartition(".")[2] for other in others.values() if other.name in made_of(module)}
    called = {node.name for node in module.tree.body if isinstance(node, ast.FunctionDef)}
    return SpecFile(
        str(module.path),
        name,
        module.tree,
        {n: spec_file(others[whole]) for whole, n in own.items()},
        frozenset(called),
    )


def foreign(text: str, *made_of: SpecFile) -> list[str]:
    """Return the foreign words of a text, a line each."""
    file = SpecFile("lease.py", "lease", ast.parse(text), {other.name: other for other in made_of})
    return [f"{complaint.line}: {complaint}" for complaint in foreign_words(file)]


# --- Imports ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "imports",
    [
        "import math",
        "import gapless.spec.language",
        "import enum",
        "from gapless.spec import forking",
        "from gapless.spec import log",
        "from gapless.spec.log import BLANK",
        "from gapless.spec.language import *",
        "from gapless.spec.language import waived",
        "from gapless.spec.language import require as need",
        "from collections.abc import Callable",
        "from dataclasses import replace",
        "from typing import Any",
        "from .other import State",
    ],
)
def test_a_spec_file_that_imports_more_is_caught(imports: str) -> None:
    (line,) = (line for line in foreign(imports) if "`: write " in line or "`: did you mean " in line)
    assert line.startswith(f"1: `{imports}`")


# --- Words --------------------------------------------------------------------------------------------------

A_SPEC = """
from dataclasses import dataclass
from enum import IntEnum
from typing import NewType

from gapless.spec.language import Map, Position, all_between, applies, assume, implies, replace, require

Slot = NewType("Slot", int)
BLANK = 8  # bytes


class Phase(IntEnum):
    NEW = 0
    DONE = 1


@dataclass(frozen=True, slots=True)
class State:
    phase: Phase = Phase.NEW
    end: Position = Position(0)
    sizes: Map[Slot, int] = Map(0)


def append(s: State, position: Position, size: int) -> State:
    '''A record is written.'''
    applies(0 < size)
    assume(size < 1024 * 1024, because="the disk has room")
    require(size <= -(-BLANK) and not s.phase == Phase.DONE, "it-fits", because="it fits", otherwise="it is cut")
    require(all_between(0, size, lambda n: s.sizes[n] % 2 == 0), "all-even", because="they are even", otherwise="no")
    after: Position = Position(position + size)
    if size == BLANK:
        return replace(s, phase=Phase.DONE)
    return replace(s, end=after, sizes=s.sizes.set(Slot(position // 2), size if is_new(s) else 0))


def is_new(s: State) -> bool:
    return implies(s.end > 0, s.sizes.cleared()[0] + s.sizes.forget_from(Slot(1))[1] == 0)


ACTIONS = (append,)
"""


@pytest.mark.parametrize("spec", spec_files(), ids=lambda spec: spec.path.name)
def test_a_spec_speaks_the_spec_language(spec: Module) -> None:
    complaints = [f"{complaint.line}: {complaint}" for complaint in foreign_words(spec_file(spec))]
    assert not complaints, listed_at(spec.path, complaints)


def test_the_spec_language_is_left_alone() -> None:
    assert foreign(A_SPEC) == []


@pytest.mark.parametrize(
    ("stated", "complaint"),
    [
        (("it-fits", "it fits, too", "it is cut"), "`'it-fits'` with 'it fits, too', and with 'it fits' in line"),
        (("it-fits", "it fits", "it is torn"), "`'it-fits'` with 'it is torn', and with 'it is cut' in line"),
        (("step-applies-here", "it fits", "it is cut"), "an id: write another one"),
        (("environment-keeps-its-promise", "it fits", "it is cut"), "an id: write another one"),
        (("", "it fits", "it is cut"), "`''` as an id: write letters"),
        (("all even", "it fits", "it is cut"), "`'all even'` as an id: write letters"),
        (("all\\neven", "it fits", "it is cut"), r"`'all\neven'` as an id: write letters"),
    ],
)
def test_an_id_is_that_of_one_rule(stated: tuple[str, str, str], complaint: str) -> None:
    rule, because, otherwise = stated
    step = f'require(size == 1, "{rule}", because="{because}", otherwise="{otherwise}")\n    after: '
    (line,) = foreign(A_SPEC.replace("after: ", step))
    assert complaint in line


def test_what_goes_wrong_may_differ_from_step_to_step() -> None:
    step = 'require(0 < size, "it-fits", because="it fits", otherwise="it is torn")\n    return s'
    flush = f"def flush(s: State, size: int) -> State:\n    {step}\n\n\nACTIONS = (append, flush)"
    text = A_SPEC.replace("ACTIONS = (append,)", flush)
    assert foreign(text) == []
    (line,) = foreign(text.replace('"it fits", otherwise="it is torn"', '"it fits, too", otherwise="it is torn"'))
    assert "another id for one of them" in line


def test_two_properties_have_two_ids() -> None:
    two = "".join(f"def {name}(s: State) -> bool:\n    return 0 <= s.end\n\n\n" for name in ("an_end", "the_end"))
    (line,) = foreign(A_SPEC.replace("ACTIONS", f"{two}INVARIANTS = (an_end,)\nAT_REST = (the_end,)\nACTIONS"))
    assert "`the_end`, whose id 'end' is that of `an_end`: write another name" in line


@pytest.mark.parametrize(
    ("body", "instead"),
    [
        ("for n in s.sizes: require(n > 0)", "all_between"),
        ("while s.end: pass", "all_between"),
        ("return [n for n in s.sizes]", "all_between"),
        ("return {n: 0 for n in s.sizes}", "all_between"),
        ("return all(n > 0 for n in s.sizes)", "all_between"),
        ("return probe(s, n)", "all_between"),  # each snippet is the body of `probe`
        ("return s.phase is n", "`s.phase == n`"),
        ("return s.phase is not n", "`s.phase != n`"),
        ("return n in (1, 2)", "comparisons joined by `or`"),
        ("return isinstance(n, int)", "tells them apart"),
        ("return len(s.sizes)", "exclusive `end`"),
        ("return max(n, 2)", "`greatest`"),
        ("return int(n)", "the value as it is"),
        ("return hash(n)", "a field that tells them apart"),
        ("return float(n)", "the value as it is"),
        ("return s.sizes.items()", "all_between"),
        ("return s.sizes.entries.get(n)", "`s.sizes.entries[key]`"),
        ("return s.sizes.put_all(n)", "a method of `Map` (cleared, "),
        ("return Map(0)", "a word of `gapless.spec.language`"),
        ("return s.__class__", "a number or a `Map`"),
        ("return s.sizes[1:n]", "`all_between` over the part"),
        ('require(n > 0, "positive", because=f"{n} is positive", otherwise="it fails")', "as texts"),
        ('applies("n")', "an `IntEnum`"),
        ('return s.phase == "done"', "an `IntEnum`"),
        ("return s.phase == None", "a number or a `Map`"),
        ("return n * 0.5", "a whole number"),
        ('require(n == 1, n, because="it must be", otherwise="it fails")', "one id and two sentences"),
        ('require(n == 1, BLANK, because="it must be", otherwise="it fails")', "one id and two sentences"),
        ('require(n == 1, "an-id", because="")', "one id and two sentences"),
        ('require(n == 1, "an-id", "because", otherwise="it fails")', "one id and two sentences"),
        ('assume(n == 1, because="a" + "b")', "one sentence"),
        ('applies(n == 1, "an-id")', "`applies(condition)`"),
        ("return s if n == 2305843009213693952 else s", "below 2⁶⁰"),
        ("return n / 2", "`//`"),
        ("return n & 1", "a flag for each bit"),
        ("return (s, n)", "a number or a `Map`"),
        ("assert n > 0", "require("),
        ("raise ValueError", "require("),
        ("try:\n        return s\n    finally:\n        n", "require("),
        ("global END", "a field of the state"),
        ("n += 1", "a new name"),
        ("return (m := n)", "a new name"),
        ("del n", "a new name"),
        ("s.end = n", "`return replace(s, end=…)`"),
        ("s.sizes[n] = 1", "`s.sizes.set(key, value)`"),
        ("s.sizes.set(n, 1)", "`return replace(s, …)` with its value"),
        ("return State(end=n)", "what is not mentioned stays"),
        ("return replace(s, **n)", "each argument by its name"),
        ("match n:\n        case 1: return s", "`if` and `==`"),
        ("def inner(): return s", "a plain function"),
        ("import math", "in the words of"),
        ("yield s", "`return replace(s, …)`"),
        ("return lambda m=len(s): m", "`len(s)` as a default"),
    ],
)
def test_a_foreign_word_is_caught(body: str, instead: str) -> None:
    lines = foreign(probed(body))
    assert instead in "\n".join(lines)
    assert {int(line.partition(":")[0]) for line in lines} <= set(range(PROBE, PROBE + 2 + body.count("\n")))


PROBE = A_SPEC[: A_SPEC.index("ACTIONS")].count("\n") + 1


def probed(body: str, head: str = "def probe(s: State, n: int) -> State:") -> str:
    """A spec that is in order but for the body of one step, or its head."""
    return A_SPEC.replace("ACTIONS = (append,)", f"{head}\n    {body}\n\n\nACTIONS = (append, probe)")


def test_a_spec_in_order_is_probed() -> None:
    assert foreign(probed("return replace(s, end=Position(n))")) == []


# --- Kinds of values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "instead"),
    [
        ("return s if s.end else s", "`s.end != 0`"),
        ("return s if not s.end else s", "`s.end != 0`"),
        ("return s if s.end and n == 1 else s", "`s.end != 0`"),
        ("return s if n == 1 or n - 1 else s", "`n - 1 != 0`"),
        ("return s if s.sizes[n] else s", "`s.sizes[n] != 0`"),
        ("return s if s.sizes else s", "a comparison"),
        ("return s if s else s", "a comparison"),
        ("return s if is_new else s", "`is_new(s, …)`"),
        ("return s if 1 else s", "`True`, `False`"),
        ('require(n, "an-id", because="it must be", otherwise="it fails")\n    return s', "`n != 0`"),
        ("applies(n)\n    return s", "`n != 0`"),
        ('assume(n % 2, because="x")\n    return s', "`n % 2 != 0`"),
        ("return s if implies(n, n == 1) else s", "`n != 0`"),
        ("return s if all_between(0, n, lambda k: s.sizes[k]) else s", "`s.sizes[k] != 0`"),
        ("return s if all_between(0, n, n) else s", "`lambda n: …`"),
        ("return s if s.sizes == s.sizes else s", "by its key"),
        ("return s if s == s else s", "its fields"),
        ("return s if n == is_new else s", "`is_new(s, …)`"),
        ("return s if n == id else s", "a parameter"),
        ("return s if s.phase == Phase.GONE else s", "a member of `Phase`: NEW, DONE"),
        ("return s if all_between(0, n, lambda k, m: k == m) else s", "of one number"),
        ("return s if s.size == 1 else s", "phase, end, sizes"),
        ("return replace(s, size=1)", "phase, end, sizes"),
        ("return n", "the next state"),
        ("return is_new(s)", "the next state"),
        ("return s if is_new(s, n) else s", "each argument"),
        ("return s if 7 // n == 1 else s", "a positive number"),
        ("return s if n % -1 == 1 else s", "a positive number"),
        ("require = n\n    return s", "a word of the language"),
        ("s = replace(s, end=Position(1))\n    return s", "another name"),
        ("return s if all_between(0, n, lambda s: s == 1) else s", "another name"),
        ("if n == 1:\n        return s", "on every way"),
        ("after = before = n\n    return s", "a new name"),
        ("holds = lambda k: k == 1\n    return s", "in `all_between"),
    ],
)
def test_a_value_of_another_kind_is_caught(body: str, instead: str) -> None:
    lines = foreign(probed(body))
    assert instead in "\n".join(lines)
    assert {int(line.partition(":")[0]) for line in lines} <= set(range(PROBE, PROBE + 2 + body.count("\n")))


def test_a_flag_is_a_truth_value_in_state_argument_and_map() -> None:
    text = A_SPEC.replace(
        "end: Position", "open: bool = False\n    known: Map[Slot, bool] = Map(False)\n    end: Position"
    )
    text = text.replace("return replace(s, phase=Phase.DONE)", "return step(s, Slot(size), s.open)").replace(
        "ACTIONS",
        """def step(s: State, slot: Slot, flag: bool) -> State:
    applies(flag and not s.open and (s.known[slot] or is_new(s)))
    return replace(s, open=slot == 1, known=s.known.set(slot, flag))


ACTIONS""",
    )
    assert foreign(text) == []
    assert "`slot != 0`" in "\n".join(foreign(text.replace("open=slot == 1", "open=slot")))
    assert "`slot != 0`" in "\n".join(foreign(text.replace("set(slot, flag)", "set(slot, slot)")))
    assert "`size != 0`" in "\n".join(foreign(text.replace("Slot(size), s.open", "Slot(size), size")))
    assert "`True` or `False`" in "\n".join(foreign(text.replace("open: bool = False", "open: bool = 0")))


@pytest.mark.parametrize(
    ("head", "instead"),
    [
        ("def probe(s: State, n: int = 1) -> State:", "each argument in each call"),
        ("def probe(s: State, *n: int) -> State:", "each argument by its name"),
        ("def probe(s: State, **n: int) -> State:", "each argument by its name"),
        ("def probe(s: State, *, n: int) -> State:", "each argument by its name"),
        ("def probe(s: State, n) -> State:", "a `NewType` of `int`"),
        ("def probe(s: State, n: float) -> State:", "in a smaller unit"),
        ("def probe(s: State, n: 'int') -> State:", "`int` without quotes"),
        ("def probe(s: State, n: int):", "`-> State`"),
        ("def probe(s: State, n: int) -> float:", "a `NewType` of `int`"),
        ("def probe(n: int, s: State) -> State:", "the next state"),
        ("def probe(s: State, n: int) -> bool:", "the next state"),
        ("def require(s: State, n: int) -> State:", "a word of the language"),
        ("def probe(s: State, require: int) -> State:", "a word of the language"),
        ("def append(s: State, n: int) -> State:", "the first is hidden"),
    ],
)
def test_a_foreign_signature_is_caught(head: str, instead: str) -> None:
    assert instead in "\n".join(foreign(probed("return s", head)))


def test_only_a_composed_spec_calls_the_steps_of_others() -> None:
    log = SpecFile("log.py", "log", ast.parse(A_SPEC.replace("def append", "def flush").replace("append", "flush")))
    source = (
        "from gapless.spec import log\nfrom gapless.spec.log import State\n"
        "def flush(s: State, size: int) -> State:\n    return log.flush(s, log.BLANK, size)\nACTIONS = (flush,)\n"
    )
    assert foreign(source, log) == []
    queue = SpecFile("queue.py", "queue", log.tree)
    assert foreign(source, queue)
    assert foreign(source.replace("log.flush(", "log.State("), log)
    assert foreign(source.replace("log.flush(", "log._flush("), log)
    assert "`size != 0`" in "\n".join(foreign(source.replace("return log", "applies(size)\n    return log"), log))


# --- At the top ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "instead"),
    [
        ("for n in range(3): pass", "a plain function"),
        ("if True:\n    END = 1", "a plain function"),
        ("print(1)", "a plain function"),
        ("odd = lambda s: s.end is 3", "a plain function"),
        ("@cache\ndef append(s): return s", "a plain function"),
        ("class State:\n    end: int = 0", "frozen=True"),
        ("@dataclass\nclass State:\n    end: int = 0", "frozen=True"),
        ("@dataclass(frozen=True)\nclass State:\n    def size(self): return 0", "a plain function"),
        ("@dataclass(frozen=True, slots=True)\nclass State:\n    __eq__ = None", "a plain function"),
        ("@dataclass(frozen=True, slots=True)\nclass State:\n    end: float = 0.0", "in a smaller unit"),
        ("@dataclass(frozen=True, slots=True)\nclass State:\n    end: int = 0.5", "a number"),
        ("@dataclass(frozen=True, slots=True)\nclass State:\n    seen: list = field(list)", "`Map[int, int] = Map(0)`"),
        ("class Phase(IntEnum):\n    NEW = auto()", "a number"),
        ("class Phase(IntEnum):\n    def step(self): return 0", "a plain function"),
        ("class Phase(Enum):\n    NEW = 0", "`class Phase(IntEnum)`"),
        ("SEEN = []", "a number"),
        ("SEEN = {}", "a number"),
        ("SEEN = set()", "a number"),
        ("SEEN = dict(a=1)", "a number"),
        ("HALF = 0.5", "a number"),
        ("HALF = 1 / 2", "a number"),
        ("NONE = None", "a number"),
        ("NOW = time()", "a number"),
        ("A, B = 1, 2", "one name"),
        ("SEEN: list[int]", "one name"),
        ("SEEN = 1\nSEEN += 1", "a plain function"),
        ("SEEN = 1\nSEEN = 2", "the first is hidden"),
        ("def append(s, n=len('')): return s", "`len('')` as a default"),
        ("require = 1", "a word of the language"),
    ],
)
def test_a_foreign_construction_is_caught(source: str, instead: str) -> None:
    assert instead in "\n".join(foreign(source))


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (
            "def left(s: State, n: int) -> State:\n    return s",
            "`left`, which is in no tuple and which nothing calls: write it into `ACTIONS`",
        ),
        ("def left(s: State, n: int) -> bool:\n    return n == 1", "write it into `INVARIANTS`"),
        (
            "def left(before: State, after: State) -> bool:\n    return before.end == after.end",
            "write it into `STEP_PROPERTIES`",
        ),
        ("def left(n: int) -> int:\n    return n", "write it into another function"),
        ("def left(n: int) -> int:\n    return right(n)\n\n\ndef right(n: int) -> int:\n    return n", "`right`"),
    ],
)
def test_an_unread_function_is_caught(function: str, complaint: str) -> None:
    assert complaint in "\n".join(foreign(A_SPEC.replace("ACTIONS", f"{function}\n\n\nACTIONS")))


def test_a_step_that_only_a_property_names_is_caught() -> None:
    """It states rules, but no trace is checked by them."""
    text = A_SPEC.replace("import Map", "import accepts, Map").replace(
        "ACTIONS",
        """def flush(s: State) -> State:
    require(s.end != 0, "an-id", because="it must be", otherwise="it fails")
    return s


def it_can_be_flushed(s: State) -> bool:
    return accepts(flush, s) or accepts(twice, s)


def twice(s: State) -> State:
    return flush(flush(s))


ENABLED = (it_can_be_flushed,)
ACTIONS""",
    )
    (line,) = foreign(text)
    assert "`flush`, which states rules and which no step is: write it into `ACTIONS`" in line
    assert foreign(text.replace("(append,)", "(append, flush)")) == []


@pytest.mark.parametrize("tuples", ["ACTIONS = (append, fill)", "ACTIONS = (append,)\nAT_REST = (asks,)"])
def test_a_step_that_asks_what_is_accepted_is_caught(tuples: str) -> None:
    """Readers of steps know no such word: none of them must come upon it."""
    text = A_SPEC.replace("import Map", "import accepts, Map").replace(
        "ACTIONS = (append,)",
        f"""def asks(s: State) -> bool:
    return accepts(append, s, Position(0), 1)


def fill(s: State) -> State:
    return s if asks(s) else replace(s, end=Position(1))


INVARIANTS = (asks,)
{tuples}""",
    )
    assert "`accepts` in `asks`, which a step is made of" in "\n".join(foreign(text))


def test_functions_that_call_one_another_in_a_circle_are_caught() -> None:
    circle = "def one(n: int) -> int:\n    return two(n)\n\n\ndef two(n: int) -> int:\n    return one(n)\n\n\nACTIONS"
    assert "which calls itself" in "\n".join(foreign(A_SPEC.replace("ACTIONS", circle)))


@pytest.mark.parametrize(
    ("tuples", "instead"),
    [
        ("ACTIONS = (append)", "a tuple"),
        ("ACTIONS = [append]", "a tuple"),
        ("ACTIONS = (append, append)", "it once"),
        ("ACTIONS = (append, True)", "a function of this file"),
        ("ACTIONS = (append, is_new)", "the next state"),
        ("ACTIONS = (append,)\nINVARIANTS = (append,)", "gives a truth value"),
        ("ACTIONS = (append,)\nSTEP_PROPERTIES = (is_new,)", "two states, before and after"),
        ("ACTIONS = (append,)\nENABLED = (append,)", "gives a truth value"),
        ("ACTIONS = (append,)\nAT_REST = (append,)", "gives a truth value"),
    ],
)
def test_a_tuple_of_something_else_is_caught(tuples: str, instead: str) -> None:
    assert instead in "\n".join(foreign(A_SPEC.replace("ACTIONS = (append,)", tuples)))


def test_a_bound_may_be_any_value_that_is_one() -> None:
    within = (
        'BOUND = Bound(says="two", within=lambda s: s.end in {1, 2}, numbers={"size": range(3), "position": (0, 1)})'
    )
    text = A_SPEC.replace("import Map", "import Bound, Map").replace("ACTIONS", f"{within}\nACTIONS")
    assert foreign(text) == []
    assert foreign(text.replace("Bound(says", "dict(says"))


# --- Who reads it -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", SPECS.values(), ids=lambda spec: spec.name)
def test_a_spec_of_ours_has_no_unread_function(spec: Spec) -> None:
    assert checked(spec) is spec


def test_every_reader_of_a_spec_refuses_a_foreign_word(tmp_path: Path) -> None:
    """If only a test refused it, a spec without tests would be proved."""
    spec = toy(tmp_path, text=TOY.replace("0 < more,", "more is not honest,"))
    bound = Bound("up to three", lambda s: s.count <= 3, {"more": (1,), "honest": (1,)})
    for read in (lambda: explore(spec, bound), lambda: list(audit(spec))):
        with pytest.raises(ForeignWords, match=r"toy\.py:15: `more is not honest`: write `more != honest`"):
            read()
