"""The kernel compiler: makes one native replay loop of a spec's functions.

Their decision trees become functions of the native language (`step_functions`), and the loop is specialised by them; no
rule is written a second time here. Native code of it is kept in the user's cache folder.

What a kernel cannot decide exactly it hands to exact replay instead of guessing (reason -1): a `Map` written outside
its window, a quantifier that reaches beyond it, values beyond ±2⁶⁰, an operation that would leave 64 bits. A spec of
which a step cannot be compiled exactly has an `obstacle`, and all its traces are left to exact replay.
"""

from __future__ import annotations

import ast
import marshal
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from importlib.util import MAGIC_NUMBER
from types import CodeType, ModuleType
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from gapless.native import (
    FLAGS,
    INTS,
    INTS8,
    INTS32,
    TABLE,
    Function,
    SyntaxFunction,
    by_python,
    digest_of,
    expected,
    handed,
    specialised,
)
from gapless.native.kinds import Signature
from gapless.native.objects.cache import cache_folder, keep, read
from gapless.spec import catalog, forking, language
from gapless.spec.catalog import SPECS, AnySpec, Spec, has_text, needs, resolve_spec, text_of, waiving
from gapless.spec.language import ASSUMED
from gapless.spec.reading.checking import checked
from gapless.spec.reading.trees import decision_trees as trees
from gapless.spec.reading.trees import difference_bounds, map_effects, ranges, terms
from gapless.spec.reading.trees.decision_trees import constant_map
from gapless.traces.replay import loop, map_columns, quantifier_functions, step_functions, syntax
from gapless.traces.replay.loop import EXACT, UNKNOWN_ACTION
from gapless.traces.replay.map_columns import columns_of
from gapless.traces.replay.step_functions import Reason, StepFunctions, steps_of, trees_of

__all__ = ["EXACT", "UNKNOWN_ACTION", "Cells", "Ints", "Kernel", "Loop", "Numbers", "Reason", "ReplayResult", "kernel"]

Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32] | npt.NDArray[np.int64]


@dataclass(frozen=True)
class Cells:
    """The elements of Maps, trace by trace, each within a window of its own.

    `origins`: int64 [traces], the lowest key of each window · `starts`: int64 [traces + 1], where its cells begin ·
    `values`: int64 [Maps of the spec, cells], for key `origins[t] + i` at `starts[t] + i` · `cut`: bool [traces], there
    is more below a window: a kernel that looks there leaves the trace to exact replay.
    """

    origins: Ints
    starts: Ints
    values: Ints
    cut: npt.NDArray[np.bool_]

    @property
    def widths(self) -> Ints:
        """The number of keys in each window."""
        return np.diff(self.starts)

    def handed(self) -> Cells:
        """Return the same cells with types for native code."""
        return Cells(handed(self.origins), handed(self.starts), handed(self.values), handed(self.cut))

    def of(self, chosen: npt.NDArray[np.bool_]) -> Cells:
        """Return the cells of some traces."""
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.widths[chosen])])
        values = self.values if chosen.all() else self.values[:, np.repeat(chosen, self.widths)]
        return Cells(self.origins[chosen], starts, values, self.cut[chosen])


@dataclass(frozen=True)
class ReplayResult:
    """The result of a kernel, per trace: the state at its end or refusal, and the event and reason of the refusal.

    `state`: int64 [scalars, traces] · `bad_at`: index of the refused event or -1, int64 [traces] · `bad_why`: reason
    (1-based, `EXACT`, or 0 for none), int64 [traces] · `covered`: accepted events per action · `deviated` and
    `deviated_at`: anomalies per deviation and the index of the first event of each · `deviant`: the deviations in each
    trace, a bit for each, int64 [traces] · `cells`: the rest of the state, if it was asked for.
    """

    state: Ints
    bad_at: Ints
    bad_why: Ints
    covered: Ints
    deviated: Ints
    deviated_at: Ints
    deviant: Ints
    cells: Cells | None = None


@dataclass(frozen=True, eq=False)
class Kernel:
    """A spec as a native replay loop.

    `obstacle`: why the plain functions judge all its traces; empty if they need not · `ignored`: the rules that it
    leaves out.
    """

    spec: Spec
    reasons: tuple[Reason, ...]
    loop: Callable[..., Any]
    obstacle: str = ""
    ignored: frozenset[str] = field(default=frozenset())

    @cached_property
    def steps(self) -> StepFunctions:
        """The functions of its loop."""
        with waiving(self.spec.name, self.ignored):
            return steps_of(trees_of(self.spec))

    @cached_property
    def unsure(self) -> tuple[int, ...]:
        """The reasons after which a trace is left to exact replay, which may know better, or continue."""
        continuing = {f"{self.spec.name}/{takeover.rule}" for takeover in self.spec.takeovers}
        rules = enumerate((reason.rule for reason in self.reasons), 1)
        return (EXACT, *(why for why, rule in rules if rule in continuing or rule.endswith(f"/{ASSUMED}")))

    @property
    def is_native(self) -> bool:
        """True if native code replays, and not Python."""
        return isinstance(self.loop, Loop) and self.loop.is_native

    def prepare(self) -> None:
        """Load or compile native code, if the expected work is large enough to use it."""
        if isinstance(self.loop, Loop):
            self.loop.prepare()

    def replay(
        self,
        starts: Ints,
        action: npt.NDArray[np.int8],
        args: Ints,
        state: Ints,
        *,
        origins: Ints | None = None,
        widths: Ints | None = None,
        cells: Cells | None = None,
        resumable: bool = False,
        rows: Ints | None = None,
        resident: Numbers | None = None,
        claims: Ints | None = None,
        watched: Ints | None = None,
        profile: str,
    ) -> ReplayResult:
        """Replay many traces, each from its own state, up to its first refusal.

        `starts`: int64 [traces + 1], trace *t* is the events `starts[t]:starts[t + 1]` · `action`: int8 [events] ·
        `args`: int64 [argument names of the spec, events] · `state`: int64 [scalars, traces], where each begins ·
        `origins`, `widths`: int64 [traces], the keys that the Maps of each trace may have · `cells`: the initial
        elements of the Maps, within these windows; default: their defaults · `resumable`: also return the final
        elements of the Maps, for more events to come · `rows`: int64 [events], the row of each: the lowest row with a
        deviation is its first · `resident`: [1 + width, Maps of the spec], the elements of the only trace's Maps, in
        place of `cells`, updated by its events; the last row is the kernel's own · `claims`: int64 [events], zeros: an
        event that is refused, and can be taken over, gets the number of the reason here, and does not end its trace ·
        `watched`: int64 [3, values], of each value of the only trace its place in the windows, or -1 and less for a
        scalar; the value; and the event that changed it last. No other argument is changed.
        """
        traces = len(starts) - 1
        none = np.zeros(traces, np.int64)
        origins = none if origins is None else handed(origins)
        widths = none if widths is None else handed(widths)
        now = np.empty(len(self.spec.scalars), np.int64)  # the state of the trace that is being replayed
        columns = max(1, len(columns_of(self.spec)))
        if resident is None:
            windows: Numbers = np.empty((1 + int(widths.max(initial=0))) * columns, np.int64)
        else:
            windows = resident.view()
            windows.shape = (resident.size,)  # a view, or an error
        found = self._result(state, _room(origins, widths, len(columns_of(self.spec))) if resumable else None)
        begin, end = (cells or (NO_CELLS if resident is None else RESIDENT)).handed(), found.cells or NO_CELLS
        allowed = np.array([profile in d.profiles for d in self.spec.deviations] + [False], np.bool_)
        self.loop(
            handed(starts), handed(action), handed(args), found.state, now, origins, widths, windows, allowed,
            found.bad_at, found.bad_why, found.covered, found.deviated, found.deviated_at, found.deviant,
            np.zeros(1, np.int64),
            begin.origins, begin.starts, begin.values, begin.cut, end.starts, end.values,
            NO_EVENTS if rows is None else handed(rows), NO_EVENTS if claims is None else claims,
            NO_VALUES if watched is None else watched,
        )  # fmt: skip
        return found

    def _result(self, state: Ints, cells: Cells | None) -> ReplayResult:
        """The arrays that a replay fills."""
        traces, deviations = state.shape[1], len(self.spec.deviations)
        return ReplayResult(
            state=np.array(state, np.int64, order="C"),
            bad_at=np.empty(traces, np.int64),
            bad_why=np.empty(traces, np.int64),
            covered=np.zeros(len(self.spec.actions), np.int64),
            deviated=np.zeros(deviations + 1, np.int64),
            deviated_at=np.zeros(deviations + 1, np.int64),
            deviant=np.empty(traces, np.int64),
            cells=cells,
        )


NO_EVENTS, NO_VALUES = np.zeros(0, np.int64), np.zeros((3, 0), np.int64)
NO_CELLS = Cells(np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros((0, 0), np.int64), np.zeros(0, np.bool_))
RESIDENT = replace(NO_CELLS, starts=np.zeros(0, np.int64))
"""Marks windows as resident: the kernel loads nothing into them."""


def _room(origins: Ints, widths: Ints, maps: int) -> Cells:
    """Allocate room for the elements of Maps."""
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(widths)])
    return Cells(origins, starts, np.zeros((maps, int(starts[-1])), np.int64), np.zeros(len(widths), np.bool_))


def kernel(spec: AnySpec, ignored: frozenset[str] = frozenset()) -> Kernel:
    """Return the kernel of a spec, without the rules in `ignored`. Raises ForeignWords.

    Ignored rules of other specs make no other kernel: there is less to compile.
    """
    whole = _kernel(resolve_spec(spec), frozenset())
    return _kernel(resolve_spec(spec), ignored & {reason.rule for reason in whole.reasons})


@cache
def _kernel(spec: Spec, ignored: frozenset[str]) -> Kernel:
    if SPECS.get(spec.name) is not spec:  # our own are checked by our tests
        checked(spec)
    digest = _digest(spec, ignored)
    path = cache_folder() / f"kernel_{spec.name}-{digest}"
    kept = read(path) if digest else None
    if kept is not None:
        head, content = kept
        code = marshal.loads(content)  # noqa: S302 - ours, and whole
        if _fits(code):
            return _made(spec, ignored, tuple(Reason(**one) for one in head["reasons"]), code, digest)
    obstacle, steps = "", StepFunctions((), (), {})
    with waiving(spec.name, ignored):
        try:
            if constant := constant_map(*spec.steps, *spec.at_rest):
                obstacle = f"its steps speak of `{constant}`, a Map that is no field"
            else:
                made = trees_of(spec)
                obstacle = made.obstacle
                steps = steps if obstacle else steps_of(made)
        except (TypeError, OverflowError, RecursionError, forking.AskedOtherwise) as error:
            obstacle = f"its steps cannot be read as terms: {error}"
    if obstacle:
        return Kernel(spec, tuple(_needed(spec)) if digest else (), _leave_all, obstacle, ignored)
    code = code_of(steps)
    if digest:
        keep(path, {"reasons": [asdict(reason) for reason in steps.reasons]}, marshal.dumps(code))
    return _made(spec, ignored, steps.reasons, code, digest)


def _made(spec: Spec, ignored: frozenset[str], reasons: tuple[Reason, ...], code: CodeType, digest: str) -> Kernel:
    replaying = Loop(spec, code, lambda: of.steps, digest)
    of = Kernel(spec, reasons, replaying, ignored=ignored)
    return of


def _fits(code: CodeType) -> bool:
    """True if code from the cache takes what the loop gives: texts may change while a process runs that keeps it."""
    steps = [one for one in code.co_consts if isinstance(one, CodeType) and one.co_name == "step"]
    return [one.co_varnames[: one.co_argcount] for one in steps] == [step_functions.DISPATCHED]


def _digest(spec: Spec, ignored: frozenset[str]) -> str:
    """Return the key of a kernel in the cache: to make a kernel takes a fifth of the time of a small check.

    It covers all inputs: its specs, the language, and the compiler. Empty if a program made the spec.
    """
    if not all(map(has_text, spec.files)):
        return ""
    texts = [text_of(module) for module in (*spec.files, *_MAKERS)]
    return digest_of(*texts, repr(sorted(ignored)), MAGIC_NUMBER.hex(), str(sys.flags.optimize))


def _needed(spec: Spec) -> Iterator[Reason]:
    """Yield the reasons for which actions of a spec are refused by their text: no kernel can evaluate them."""
    for name, action in spec.actions.items():
        for need in needs(action):
            yield Reason(name, name, f"{spec.name}/{need.rule}", need.because, need.otherwise)


def _leave_all(starts: Ints, *columns: Any) -> None:
    """Leave all traces to exact replay: `Kernel.replay` describes the columns."""
    bad_at, bad_why, deviant = columns[BAD_AT], columns[BAD_AT + 1], columns[BAD_AT + 5]
    bad_at[:], bad_why[:], deviant[:] = starts[:-1], EXACT, 0


BAD_AT = 8  # of the columns behind the first


def code_of(steps: StepFunctions) -> CodeType:
    """Compile the functions to a module of Python."""
    whole = ast.Module(list(steps.functions), [])
    code: CodeType = compile(whole, "a kernel", "exec")
    return code


_MAKERS: tuple[ModuleType, ...] = (
    language, forking, terms, map_effects, trees, difference_bounds, ranges, syntax, step_functions, loop, catalog,
    quantifier_functions, map_columns,
    sys.modules[__name__],
)  # fmt: skip

Run = Callable[..., Any]
LARGEST = 400_000  # bytes of Python's code of the steps that are compiled; more take minutes


class Loop:
    """A replay loop: run by Python for the first events, and compiled if there are many.

    To compile takes longer than to judge a small file. Both are made of the same functions, and so are the answers.
    Code that was compiled before is used from the first event on, also if `few` is 0.

    `code`: the steps as a module of Python · `steps`: the same as syntax trees, which only native code needs ·
    `digest`: another one for other steps.
    """

    few = 500_000  # events and traces

    def __init__(self, spec: Spec, code: CodeType, steps: Callable[[], StepFunctions], digest: str = "") -> None:
        self._spec, self._code, self._steps, self._digest = spec, code, steps, digest
        self._seen = 0
        self._by_python: Run | None = None
        self._native: Any = None

    def __call__(self, starts: Ints, *columns: Any) -> None:
        """Replay traces: `Kernel.replay` describes the columns."""
        if self._native is None:
            self._seen = max(self._seen + self._work(starts, columns[0], columns[5]), expected())
        self._chosen()(starts, *columns)

    def prepare(self) -> None:
        """Load or compile native code, if the expected work will use it: forked workers then share it."""
        self._seen = max(self._seen, expected())
        self._chosen()
        if self._native is not None:
            self._native.load()

    def _work(self, starts: Ints, action: npt.NDArray[np.int8], widths: Ints) -> int:
        """Estimate the work for these events, in events: of some, the windows are looked at as a whole."""
        of_event = self._wide.take(action[starts[0] : starts[-1]], mode="clip")
        far = int(np.repeat(widths, np.diff(starts))[of_event].sum()) if of_event.any() else 0
        return int(starts[-1] - starts[0]) + len(starts) + far // 10

    @cached_property
    def _wide(self) -> npt.NDArray[np.bool_]:
        """Marks the actions that clear a Map, or ask about every number."""
        calls = {one.co_name: set(one.co_names) for one in self._code.co_consts if isinstance(one, CodeType)}

        def is_wide(name: str) -> bool:
            mine = calls.get(name, set())
            return any(
                called in ("clear", "forget") or called.startswith("holds_") or is_wide(called) for called in mine
            )

        return np.array([is_wide(f"step_{code}") for code in range(len(self._spec.actions))], np.bool_)

    @property
    def is_native(self) -> bool:
        """True if native code is there, or comes with the expected work."""
        self._seen = max(self._seen, expected())
        self._chosen()
        return self._native is not None

    def load(self) -> int:
        """Load or compile native code. Returns the number of functions: none if the spec is too large."""
        if self._is_too_large:
            return 0
        native_reading(self._spec, self._steps, self._digest).code.load()
        return 1

    def _chosen(self) -> Run:
        if self._native is not None:
            return cast("Run", self._native)
        if not self._is_too_large and (self._seen > self.few or self._by_python is None):
            native = native_reading(self._spec, self._steps, self._digest)
            kept = native.code.is_kept
            if self._seen > self.few or kept:
                self._native = native.code
                return cast("Run", self._native)
        if self._by_python is None:
            self._by_python = python_reading(self._spec, self._code)
        return self._by_python

    @cached_property
    def _is_too_large(self) -> bool:
        """True if it would take minutes to compile."""
        return (
            sum(len(function.co_code) for function in self._code.co_consts if isinstance(function, CodeType)) > LARGEST
        )


def python_reading(spec: Spec, code: CodeType, names: Mapping[str, Any] | None = None) -> Run:
    """Return the loop as Python runs it. `names`: replacements of the functions that steps call."""
    known = {**words(spec), **(names or {})}
    found: dict[str, Any] = {
        name: by_python(word) if isinstance(word, Function) else word for name, word in known.items()
    }
    exec(code, found)  # noqa: S102 - the compiler's own
    return by_python(specialised(loop.replay, STEP=found["step"], **constants(spec)))


def words(spec: Spec) -> dict[str, Any]:
    """Return the functions of the loop that steps call."""
    return {name: specialised(getattr(loop, name), **constants(spec)) for name in loop.WORDS}


def constants(spec: Spec) -> dict[str, Any]:
    """Return the numbers that specialise the loop for a spec."""
    columns = columns_of(spec)
    return {
        "SCALARS": len(spec.scalars),
        "SINGLES": len(columns.singles),
        "MAPS": len(columns),
        "COLUMNS": max(1, len(columns)),
        "DEFAULTS": columns.defaults if len(columns) else np.zeros(1, np.int64),
    }


def native_reading(spec: Spec, steps: Callable[[], StepFunctions], digest: str = "") -> Function:
    """Return the loop as a compiled function. `steps` are made only if the cache has none under the digest."""
    step = _KeptSteps(spec, steps, digest) if digest else _sources(spec, steps())["step"]
    made: Function = specialised(loop.replay, STEP=step, **constants(spec))
    made.kinds = signatures(spec)
    return made


def signatures(spec: Spec) -> list[Signature]:
    """Return the types of the loop's columns, as `Kernel.replay` passes them."""
    windows = [INTS, INTS32] if spec.name in RESIDENT_NARROW else [INTS]
    return [(
        INTS, INTS8, TABLE, TABLE, INTS, INTS, INTS, resident, FLAGS, INTS, INTS, INTS, INTS, INTS, INTS, INTS, INTS,
        INTS, TABLE, FLAGS, INTS, TABLE, INTS, INTS, TABLE,
    ) for resident in windows]  # fmt: skip


RESIDENT_NARROW = frozenset({"hash_index"})
"""The specs with resident windows of 32 bits."""


def _sources(spec: Spec, steps: StepFunctions) -> dict[str, Any]:
    """Return the functions by name, as they see each other."""
    names: dict[str, Any] = words(spec)
    for node in steps.functions:
        names[node.name] = SyntaxFunction(f"{spec.name}.{node.name}", node, names)
    return names


class _KeptSteps(SyntaxFunction):
    """The steps of a spec, made only if the cache has no native code under their digest."""

    def __init__(self, spec: Spec, steps: Callable[[], StepFunctions], digest: str) -> None:
        super().__init__(f"{spec.name}.step", NO_FUNCTION, {}, digest=digest)
        self._spec, self._steps = spec, steps

    @cached_property
    def _made(self) -> dict[str, Any]:
        return _sources(self._spec, self._steps())

    @property
    def node(self) -> ast.FunctionDef:
        """The syntax tree."""
        made: SyntaxFunction = self._made["step"]
        return made.node

    @property
    def names(self) -> Mapping[str, Any]:
        """The global names that it sees."""
        return self._made

    @property
    def global_names(self) -> tuple[str, ...]:  # it never changes, and is not kept
        """Return no names: the digest covers them all, and none is a constant of the loop."""
        return ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of its parameters."""
        return step_functions.DISPATCHED


NO_FUNCTION = syntax.function("step", (), [syntax.give(syntax.constant(0))])
