"""The kernel compiler: makes one native replay loop of a spec's functions.

Their source is written by `kernel_source`, which runs them; no rule is written a second time here. Numba compiles it
once; the object code is kept in the user's cache folder (see `gapless.traces.object_code`).

What a kernel cannot decide exactly it hands to exact replay instead of guessing (reason -1): a `Map` written outside
its window, a quantifier that reaches beyond it, values beyond ±2⁶⁰.
"""

from __future__ import annotations

import logging
import marshal
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import CodeType
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from gapless.spec import catalog, forking, language
from gapless.spec.catalog import SPECS, AnySpec, Spec, text_of, the, waiving
from gapless.spec.language import ASSUMED
from gapless.spec.reading.checking import checked
from gapless.traces import object_code
from gapless.traces.native import expected, handed
from gapless.traces.object_code import ObjectCode
from gapless.traces.replay import fragments, kernel_source
from gapless.traces.replay.kernel_source import Reason, Writer

Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32] | npt.NDArray[np.int64]

LOG = logging.getLogger("gapless")

EXACT = -1  # the reason of a trace that only exact replay can judge
UNKNOWN_ACTION = -2  # an action code that the spec does not have


@dataclass(frozen=True)
class Cells:
    """What Maps hold, trace by trace, each within a window of its own.

    `origins`: int64 [traces], the lowest key of each window · `starts`: int64 [traces + 1], where its cells begin ·
    `values`: int64 [Maps of the spec, cells], for key `origins[t] + i` at `starts[t] + i` · `cut`: bool [traces], there
    is more below a window: a kernel that looks there leaves the trace to others.
    """

    origins: Ints
    starts: Ints
    values: Ints
    cut: npt.NDArray[np.bool_]

    @property
    def widths(self) -> Ints:
        """How many keys are in each window."""
        return np.diff(self.starts)

    def handed(self) -> Cells:
        """The same, as native code is given it."""
        return Cells(handed(self.origins), handed(self.starts), handed(self.values), handed(self.cut))

    def of(self, chosen: npt.NDArray[np.bool_]) -> Cells:
        """Those of some traces."""
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.widths[chosen])])
        values = self.values if chosen.all() else self.values[:, np.repeat(chosen, self.widths)]
        return Cells(self.origins[chosen], starts, values, self.cut[chosen])


@dataclass(frozen=True)
class Replayed:
    """What a kernel found, per trace: the state at its end or refusal, and where and why it was refused.

    `state`: int64 [scalars, traces] · `bad_at`: index of the refused event or -1, int64 [traces] · `bad_why`: reason
    (1-based, `EXACT`, or 0 for none), int64 [traces] · `covered`: accepted events per action · `deviated` and
    `deviated_at`: anomalies per deviation and the index of the first event of each · `deviant`: the deviations in each
    trace, a bit for each, int64 [traces] · `cells`: the rest of the state, where it was asked for.
    """

    state: Ints
    bad_at: Ints
    bad_why: Ints
    covered: Ints
    deviated: Ints
    deviated_at: Ints
    deviant: Ints
    cells: Cells | None = None


@dataclass(frozen=True)
class Kernel:
    """A spec as a native replay loop."""

    spec: Spec
    reasons: tuple[Reason, ...]
    source: str
    loop: Callable[..., None]

    @cached_property
    def unsure(self) -> tuple[int, ...]:
        """The reasons with which a trace is left to exact replay: it may know better, or go on behind the event."""
        goes_on = {f"{self.spec.name}/{takeover.rule}" for takeover in self.spec.takeovers}
        rules = enumerate((reason.rule for reason in self.reasons), 1)
        return (EXACT, *(why for why, rule in rules if rule in goes_on or rule.endswith(f"/{ASSUMED}")))

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
        going_on: bool = False,
        rows: Ints | None = None,
        held: Numbers | None = None,
        profile: str,
    ) -> Replayed:
        """Replay many traces, each from its own state, up to its first refusal.

        `starts`: int64 [traces + 1], trace *t* is the events `starts[t]:starts[t + 1]` · `action`: int8 [events] ·
        `args`: int64 [argument names of the spec, events] · `state`: int64 [scalars, traces], where each begins
        · `origins`, `widths`: int64 [traces], the keys that the Maps of each trace may hold · `cells`: what the Maps
        begin with, within these windows; their defaults if it is not given · `going_on`: what they hold at the end is
        wanted too, for more events to come · `rows`: int64 [events], where each stands: the lowest row with a deviation
        is its first · `held`: [1 + width, Maps of the spec], what the Maps of the only trace hold, in place of `cells`:
        its events go on from that, and change it; the last row is the kernel's own. Nothing else given is changed.
        """
        traces = len(starts) - 1
        none = np.zeros(traces, np.int64)
        origins = none if origins is None else handed(origins)
        widths = none if widths is None else handed(widths)
        now = np.empty(len(self.spec.scalars), np.int64)  # the state of the trace that is being replayed
        windows = held
        if windows is None:
            windows = np.empty((1 + int(widths.max(initial=0)), max(1, len(self.spec.maps))), np.int64)
        deviations = self.spec.deviations
        found = Replayed(
            state=np.array(state, np.int64, order="C"),
            bad_at=np.empty(traces, np.int64),
            bad_why=np.empty(traces, np.int64),
            covered=np.zeros(len(self.spec.actions), np.int64),
            deviated=np.zeros(len(deviations) + 1, np.int64),
            deviated_at=np.zeros(len(deviations) + 1, np.int64),
            deviant=np.empty(traces, np.int64),
            cells=_room(origins, widths, len(self.spec.maps)) if going_on else None,
        )
        begin, end = (cells or (NO_CELLS if held is None else HELD)).handed(), found.cells or NO_CELLS
        allowed = np.array([profile in d.profiles for d in deviations] + [False], np.bool_)
        self.loop(
            handed(starts), handed(action), handed(args), found.state, now, origins, widths, windows, allowed,
            found.bad_at, found.bad_why, found.covered, found.deviated, found.deviated_at, found.deviant,
            begin.origins, begin.starts, begin.values, begin.cut, end.starts, end.values,
            np.zeros(0, np.int64) if rows is None else handed(rows),
        )  # fmt: skip
        return found


NO_CELLS = Cells(np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros((0, 0), np.int64), np.zeros(0, np.bool_))
HELD = replace(NO_CELLS, starts=np.zeros(0, np.int64))
"""Says to a kernel that its windows are held: nothing is to be put into them."""


def _room(origins: Ints, widths: Ints, maps: int) -> Cells:
    """Room for what Maps hold."""
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(widths)])
    return Cells(origins, starts, np.zeros((maps, int(starts[-1])), np.int64), np.zeros(len(widths), np.bool_))


def kernel(spec: AnySpec, ignored: frozenset[str] = frozenset()) -> Kernel:
    """The kernel of a spec, without the rules in `ignored`. Raises ForeignWords.

    What is ignored of other specs makes no other kernel: there is less to compile.
    """
    whole = _kernel(the(spec), frozenset())
    return _kernel(the(spec), ignored & {reason.rule for reason in whole.reasons})


@cache
def _kernel(spec: Spec, ignored: frozenset[str]) -> Kernel:
    name = spec.name if SPECS.get(spec.name) is spec else checked(spec).name  # our own are checked by our tests
    path = _kept_at(spec, ignored) if SPECS.get(name) is spec else None
    kept = object_code.read(path) if path else None
    if kept is not None:
        head, text = kept
        reasons = tuple(Reason(**{**one, "reads": frozenset(map(tuple, one["reads"]))}) for one in head["reasons"])
        source = text.decode()
    else:
        with waiving(name, ignored):
            writer = Writer(spec)
            source = writer.source()
        reasons = tuple(writer.reasons)
        if path is not None:
            told = [{**vars(reason), "reads": sorted(reason.reads)} for reason in reasons]
            object_code.keep(path, {"reasons": told}, source.encode())
    return Kernel(spec, reasons, source, Loop(name, source))


def _kept_at(spec: Spec, ignored: frozenset[str]) -> Path:
    """Where the text of a kernel of ours is kept: to write it takes a fifth of the time of a small check."""
    digest = object_code.digest_of(_texts(), repr(sorted(ignored)))
    return object_code.cache_folder() / f"text_{spec.name}-{digest}.py"


@cache
def _texts() -> str:
    """All that kernels of ours are written from: every spec, the language, and those who write them."""
    specs = {module.__name__: module for spec in SPECS.values() for module in spec.files}
    return "\0".join(text_of(module) for _, module in sorted({**specs, **_WRITERS}.items()))


_WRITERS = {
    module.__name__: module for module in (language, forking, fragments, kernel_source, catalog, sys.modules[__name__])
}


BY_NUMBA = "from gapless.traces.native import njit\n"
BY_PYTHON = "def njit(*function, **_how):\n    return function[0] if function else njit\n"
Compiled = Callable[..., None]


class Loop:
    """A replay loop: by Python as it stands for the first events, and compiled once there are many.

    To compile takes longer than to judge a small file: 2 to 20 s, against 1 or 2 µs an event. The text is the same,
    and so are the answers. What was compiled before is used from the first event on, and so is all where `few` is 0.
    """

    few = 500_000  # events and traces
    longest = 350_000  # letters of source that are compiled; what is longer takes minutes

    def __init__(self, name: str, source: str) -> None:
        self._name, self._source = name, source
        self._seen = 0
        self._by_python: Compiled | None = None
        self._native: Compiled | None = None

    def __call__(self, starts: Ints, *columns: Any) -> None:
        """Replay traces: `Kernel.replay` says what the columns are."""
        self._seen = max(self._seen + int(starts[-1] - starts[0]) + len(starts), expected())
        self._chosen()(starts, *columns)

    def _chosen(self) -> Compiled:
        if self._native is not None:
            return self._native
        if len(self._source) <= self.longest and (self._seen > self.few or self._by_python is None):
            code = ObjectCode(f"replay_{self._name}", lambda: self._source, self._function)
            kept = code.is_kept
            if self._seen > self.few or kept:
                if not kept:
                    LOG.info("compiling the kernel of %s, once: more than %s events", self._name, f"{self.few:,}")
                self._native = code
                return code
        if self._by_python is None:
            self._by_python = run_by_python(self._source)["replay"]
        return self._by_python

    def _function(self) -> Any:
        """The loop as numba takes it."""
        names: dict[str, Any] = {"__name__": f"gapless_kernel_{self._name}"}
        exec(compile(self._source, "a kernel", "exec"), names)  # noqa: S102 - the compiler's own text
        return names["replay"].py_func


def run_by_python(source: str) -> dict[str, Any]:
    """The functions of a kernel's source, as they stand."""
    names: dict[str, Any] = {}
    exec(_bytecode(source.replace(BY_NUMBA, BY_PYTHON)), names)  # noqa: S102 - the compiler's own text
    return names


def _bytecode(source: str) -> CodeType:
    """What Python makes of a source; kept, as that of modules is: to make it takes a twentieth of a small check."""
    digest = object_code.digest_of(source, MAGIC_NUMBER.hex(), str(sys.flags.optimize))
    path = object_code.cache_folder() / f"bytecode-{digest}"
    kept = object_code.read(path)
    if kept is not None:
        return cast("CodeType", marshal.loads(kept[1]))  # noqa: S302 - ours, and whole
    code = compile(source, "a kernel", "exec")
    object_code.keep(path, {}, marshal.dumps(code))
    return code
