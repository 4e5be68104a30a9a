"""The kernel compiler: reads a spec's functions as source code, and makes one native replay loop of them.

Every action is run on fragments of code (`Code`, `Window`) by the forking engine; its decision tree becomes nested
`if`s, its effects assignments, its refusals numbered reasons. No rule is written a second time here. Numba compiles
the result, and caches it beside the generated file, which lies in the user's cache folder under a digest of its text.

What a kernel cannot decide exactly it hands to exact replay instead of guessing (reason -1): a `Map` written outside
its window, a quantifier that reaches beyond it, values beyond ±2⁶⁰.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import platformdirs

from gapless.spec import forking
from gapless.spec.catalog import AnySpec, Spec, the, waiving
from gapless.spec.language import Reader, Refused, reader
from gapless.spec.reading.checking import checked
from gapless.traces.replay.fragments import ARGUMENT, Code, Reads, Window, reads_of, text_of

Ints = npt.NDArray[np.int64]

EXACT = -1  # the reason of a trace that only exact replay can judge
UNKNOWN_ACTION = -2  # an action code that the spec does not have
LIMIT = 2**60  # so that sums of a few arguments and fields stay within 64 bits


@dataclass(frozen=True)
class Reason:
    """Why a step is refused: the need that is not met, what follows from that, and what the need looks at."""

    action: str
    step: str  # the action's name, or that of the deviation that was tried in its place
    rule: str  # its id, SPEC/RULE
    because: str
    otherwise: str
    reads: Reads

    @property
    def arguments(self) -> frozenset[str]:
        """The event's arguments that the need looks at."""
        return frozenset(name for name, key in self.reads if key == ARGUMENT)

    @property
    def fields(self) -> frozenset[tuple[str, str]]:
        """The state's fields that the need looks at; of a Map, with the source of the key."""
        return frozenset((name, key) for name, key in self.reads if key != ARGUMENT)


def _as_written(question: Code) -> str:
    """Two questions are one if they are written alike: `==` of fragments is a fragment."""
    return question.text


QUANTIFIER = """

@njit
def {name}(low, high, {names}):
    if low < high and (low < origin or high > origin + width):
        escape[0] = 1
        return False
    for n in range(low, high):
{body}    return True
"""


class _Quantifiers(Reader):
    """Reads `all_between` as a loop in a function of its own, bounded by the window."""

    def __init__(self, names: list[str]) -> None:
        self.names = ", ".join([*names, "windows", "origin", "width", "escape"])
        self.functions: dict[str, str] = {}  # names by body, for every path through a step asks again

    def source(self) -> str:
        """The functions that the steps call."""
        return "".join(QUANTIFIER.format(name=n, names=self.names, body=b) for b, n in self.functions.items())

    def all_between(self, low: Any, high: Any, holds: Callable[[Any], Any]) -> Code:
        tree = forking.decision_tree(holds, Code("n"), known=forking.Path.asked_before, key=_as_written)
        body = _truth(tree, " " * 8)
        name = self.functions.setdefault(body, f"holds_{len(self.functions)}")
        inside = reads_of(*_questions(tree))
        return Code(f"{name}({text_of(low)}, {text_of(high)}, {self.names})", reads_of(low, high) | inside)


def _questions(tree: Any) -> Iterator[Any]:
    if isinstance(tree, forking.Leaf):
        yield tree.outcome
        return
    yield tree.question
    yield from _questions(tree.yes)
    yield from _questions(tree.no)


def _truth(tree: Any, indent: str) -> str:
    """Source that returns False where the tree's outcome is false."""
    if isinstance(tree, forking.Leaf):
        return f"{indent}if not {text_of(tree.outcome)}:\n{indent}    return False\n"
    return _branches(tree, indent, _truth)


def _branches(tree: Any, indent: str, grow: Callable[[Any, str], str]) -> str:
    deeper = indent + "    "
    return f"{indent}if {text_of(tree.question)}:\n{grow(tree.yes, deeper)}{indent}else:\n{grow(tree.no, deeper)}"


class _Writer:
    """Writes one spec's replay loop."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.reasons: list[Reason] = []
        names = [f"s_{name}" for name in spec.scalars] + [f"a_{name}" for name in spec.arguments]
        self.quantifiers = _Quantifiers(names)
        fields: dict[str, Any] = {name: Code(f"s_{name}", frozenset({(name, "")})) for name in spec.scalars}
        for column, name in enumerate(spec.maps):
            fields[name] = Window(column, name, int(getattr(spec.initial, name).default))
        self.state = type(spec.initial)(**fields)

    def step(self, function: Callable[..., Any], action: str, indent: str) -> str:
        """Source of one step: sets `why` where it is refused, and the state where it is not."""
        args = [Code(f"a_{name}", frozenset({(name, ARGUMENT)})) for name in self.spec.parameters[action]]
        token = reader.set(self.quantifiers)
        try:
            tree = forking.decision_tree(function, self.state, *args, known=forking.Path.asked_before, key=_as_written)
        finally:
            reader.reset(token)

        def grow(node: Any, depth: str) -> str:
            if not isinstance(node, forking.Leaf):
                return _branches(node, depth, grow)
            if isinstance(node.outcome, Refused):
                return self.refusal(action, function.__name__, node, depth)
            return self.effect(node, depth)

        return grow(tree, indent)

    def refusal(self, action: str, step: str, leaf: Any, indent: str) -> str:
        refused, rule = leaf.outcome, f"{self.spec.name}/{leaf.outcome.rule}"
        self.reasons.append(Reason(action, step, rule, refused.because, refused.otherwise, reads_of(leaf.asked)))
        return f"{indent}why = {len(self.reasons)}\n"

    def effect(self, leaf: Any, indent: str) -> str:
        """Every new value is computed before any is stored, for each may read what another replaces.

        What is computed must lie within the bound, as all that goes in does: so no step can leave 64 bits.
        """
        now: list[str] = []
        then: list[str] = []
        computed: list[str] = []

        def keep(value: Any) -> str:
            name, text = f"t{len(now)}", text_of(value)
            now.append(f"{indent}{name} = {text}\n")
            if text.startswith("("):  # an operation, and neither a name nor a lookup
                computed.append(name)
            return name

        for name in self.spec.scalars:
            value = getattr(leaf.outcome, name)
            if text_of(value) != f"s_{name}":
                then.append(f"s_{name} = {keep(value)}\n")
        for name in self.spec.maps:
            window = getattr(leaf.outcome, name)
            if window.empty:
                then.append(f"windows[:width, {window.column}] = {window.default}\n")
            then += [f"{effect.source(window, keep)}\n" for effect in window.effects]
        if not computed:
            return "".join([*now, *(indent + line for line in then)]) or f"{indent}pass\n"
        large = " or ".join(f"not -LIMIT < {name} < LIMIT" for name in computed)
        stored = "".join(f"{indent}    {line}" for line in then)
        return f"{''.join(now)}{indent}if {large}:\n{indent}    why = -1\n{indent}else:\n{stored}"

    def action(self, code: int, name: str) -> str:
        """Source of one branch of the loop: arguments, the action, and the deviations that may stand in for it."""
        inside = " " * 16
        parameters = self.spec.parameters[name]
        loads = "".join(f"{inside}a_{arg} = args[{self.spec.arguments.index(arg)}, e]\n" for arg in parameters)
        large = " or ".join(f"not -LIMIT < a_{arg} < LIMIT" for arg in parameters)
        tree = self.step(self.spec.actions[name], name, inside + ("    " if large else ""))
        body = f"{inside}if {large}:\n{inside}    why = -1\n{inside}else:\n{tree}" if large else tree
        for number, deviation in enumerate(self.spec.deviations):
            if deviation.instead_of is self.spec.actions[name]:
                body += (
                    f"{inside}if why > 0 and allowed[{number}]:\n"
                    f"{inside}    refused, why = why, 0\n"
                    f"{self.step(deviation.step, name, inside + '    ')}"
                    f"{inside}    if why == 0 and escape[0] == 0:\n"
                    f"{inside}        if deviated[{number}] == 0:\n"
                    f"{inside}            deviated_at[{number}] = e\n"
                    f"{inside}        deviated[{number}] += 1\n"
                    f"{inside}        deviant[t] |= {1 << number}\n"
                    f"{inside}    elif why > 0:\n"
                    f"{inside}        why = refused\n"
                )
        return f"            {'elif' if code else 'if'} act == {code}:\n{loads}{body}"

    def source(self) -> str:
        """The whole file."""
        steps = "".join(self.action(code, name) for code, name in enumerate(self.spec.actions))
        inward = "".join(f"        s_{name} = state[{row}, t]\n" for row, name in enumerate(self.spec.scalars))
        outward = "".join(f"        state[{row}, t] = s_{name}\n" for row, name in enumerate(self.spec.scalars))
        bound = LOOP_BOUND.format(large=" or ".join(f"not -LIMIT < s_{name} < LIMIT" for name in self.spec.scalars))
        zeros = "".join(f"    a_{name} = 0\n" for name in self.spec.arguments)
        defaults = "".join(
            f"        windows[:width, {column}] = {int(getattr(self.spec.initial, name).default)}\n"
            for column, name in enumerate(self.spec.maps)
        )
        head = HEAD.format(spec=self.spec.name, limit=LIMIT) + self.quantifiers.source()
        return (
            head + LOOP_HEAD + zeros + LOOP_TRACE + inward + bound + defaults + LOOP_EVENT + steps + LOOP_TAIL + outward
        )


HEAD = '''"""Generated from the spec `{spec}`. Do not edit: change the spec."""

from numba import njit

LIMIT = {limit}


@njit(inline="always")
def at(windows, place, width, column, default):
    return windows[place, column] if 0 <= place < width else default


@njit(inline="always")
def put(windows, place, width, column, default, value, escape):
    if 0 <= place < width:
        windows[place, column] = value
    elif value != default:
        escape[0] = 1


@njit(inline="always")
def forget(windows, place, width, column, default):
    for later in range(max(place, 0), width):
        windows[later, column] = default
'''

LOOP_HEAD = """

@njit(nogil=True, cache=True)
def replay(
    starts, action, args, state, origins, widths, windows, allowed,
    bad_at, bad_why, covered, deviated, deviated_at, deviant,
):
    escape = deviated_at[-1:]
    refused = 0
"""

LOOP_TRACE = """    for t in range(len(starts) - 1):
        bad_at[t] = -1
        bad_why[t] = 0
        deviant[t] = 0
        origin = origins[t]
        width = widths[t]
"""

LOOP_BOUND = """        if {large}:
            bad_at[t] = starts[t]
            bad_why[t] = -1
            continue
"""

LOOP_EVENT = """        for e in range(starts[t], starts[t + 1]):
            why = 0
            act = action[e]
"""

LOOP_TAIL = """            else:
                why = -2
            if escape[0] != 0:
                escape[0] = 0
                why = -1
            if why != 0:
                bad_at[t] = e
                bad_why[t] = why
                break
            covered[act] += 1
"""


@dataclass(frozen=True)
class Replayed:
    """What a kernel found, per trace: the state at its end or refusal, and where and why it was refused.

    `state`: int64 [scalars, traces] · `bad_at`: index of the refused event or -1, int64 [traces] · `bad_why`: reason
    (1-based, `EXACT`, or 0 for none), int64 [traces] · `covered`: accepted events per action · `deviated` and
    `deviated_at`: anomalies per deviation and the index of the first event of each · `deviant`: the deviations in each
    trace, a bit for each, int64 [traces].
    """

    state: Ints
    bad_at: Ints
    bad_why: Ints
    covered: Ints
    deviated: Ints
    deviated_at: Ints
    deviant: Ints


@dataclass(frozen=True)
class Kernel:
    """A spec as a native replay loop."""

    spec: Spec
    reasons: tuple[Reason, ...]
    source: str
    loop: Callable[..., None]

    def replay(
        self,
        starts: Ints,
        action: npt.NDArray[np.int8],
        args: Ints,
        state: Ints,
        *,
        origins: Ints | None = None,
        widths: Ints | None = None,
        profile: str,
    ) -> Replayed:
        """Replay many traces, each from its own state, up to its first refusal.

        `starts`: int64 [traces + 1], trace *t* is the events `starts[t]:starts[t + 1]` · `action`: int8 [events] ·
        `args`: int64 [argument names of the spec, events] · `state`: int64 [scalars, traces], where each begins
        (Maps begin at their default) · `origins`, `widths`: int64 [traces], the keys that the Maps of each trace
        may hold. Nothing given is changed.
        """
        traces = len(starts) - 1
        none = np.zeros(traces, np.int64)
        origins = none if origins is None else origins
        widths = none if widths is None else widths
        windows = np.empty((max(1, int(widths.max(initial=0))), max(1, len(self.spec.maps))), np.int64)
        deviations = self.spec.deviations
        found = Replayed(
            state=np.array(state, np.int64, order="C"),
            bad_at=np.empty(traces, np.int64),
            bad_why=np.empty(traces, np.int64),
            covered=np.zeros(len(self.spec.actions), np.int64),
            deviated=np.zeros(len(deviations) + 1, np.int64),
            deviated_at=np.zeros(len(deviations) + 1, np.int64),
            deviant=np.empty(traces, np.int64),
        )
        allowed = np.array([profile in d.profiles for d in deviations] + [False], np.bool_)
        self.loop(
            starts, action, args, found.state, origins, widths, windows, allowed,
            found.bad_at, found.bad_why, found.covered, found.deviated, found.deviated_at, found.deviant,
        )  # fmt: skip
        return found


def kernel(spec: AnySpec, ignored: frozenset[str] = frozenset()) -> Kernel:
    """The kernel of a spec, without the rules in `ignored`. Raises ForeignWords.

    What is ignored of other specs makes no other kernel: there is less to compile.
    """
    whole = _kernel(the(spec), frozenset())
    return _kernel(the(spec), ignored & {reason.rule for reason in whole.reasons})


@cache
def _kernel(spec: Spec, ignored: frozenset[str]) -> Kernel:
    name = checked(spec).name
    with waiving(name, ignored):
        writer = _Writer(spec)
        source = writer.source()
    return Kernel(spec, tuple(writer.reasons), source, _compiled(name, source))


COMPILED = 350_000  # letters of source at most; a spec that is made of others has more, for its steps are theirs
BY_NUMBA = "from numba import njit\n"
BY_PYTHON = "def njit(*function, **_how):\n    return function[0] if function else njit\n"


def _compiled(name: str, source: str) -> Callable[..., None]:
    """The loop, imported from a file: numba keeps machine code only for functions that have one.

    What it would compile for minutes is run as it stands, by Python: the same text, and the same answers.
    """
    if len(source) > COMPILED:
        source = source.replace(BY_NUMBA, BY_PYTHON)
    digest = hashlib.sha256(source.encode()).hexdigest()[:16]
    path = _cache_folder() / f"{name}_{digest}.py"
    if not _holds(path, source):
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".tmp", delete=False, encoding="utf-8") as file:
            file.write(source)
        Path(file.name).replace(path)
    found = importlib.util.spec_from_file_location(f"gapless_kernel_{name}_{digest}", path)
    if found is None or found.loader is None:  # pragma: no cover - a path that ends in .py always has a loader
        raise ImportError(path)
    module = importlib.util.module_from_spec(found)
    sys.modules[module.__name__] = module  # numba finds cached machine code again through the module's name
    found.loader.exec_module(module)
    loop: Callable[..., None] = module.replay
    return loop


def _holds(path: Path, source: str) -> bool:
    """Whether the file has this very text: it is going to be run."""
    try:
        return path.read_text(encoding="utf-8") == source
    except (OSError, ValueError):
        return False


@cache
def _cache_folder() -> Path:
    """Where generated kernels are kept: the user's cache, or a folder of this process where that cannot be written."""
    folder = Path(platformdirs.user_cache_dir("gapless")) / "kernels"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return Path(tempfile.mkdtemp(prefix="gapless-"))
