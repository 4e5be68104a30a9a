"""The search as native code: the same states in the same order as `search.py` finds, some fifty times as fast.

A state is packed into a few words, mostly one (`packing.py`), and a table says by its hash whether it was met before.
What steps make of a block of states is looked up all together, so that memory is waited for once. Where states were
packed by a search before, those beyond the bound are judged and counted, and not kept: most of what is met may lie
there. For them, or for the way to a state, the search is run again. What is found to be
broken is judged again by the plain functions, on the states that the words stand for. A spec or a bound that cannot
be read without being called, and numbers beyond 2**60, are left to the plain search.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, get_args, get_type_hints

import immutables
import numpy as np

from gapless.native import Function, LanguageError
from gapless.properties.exploration.bounds import Bound, NotSymbolic
from gapless.properties.exploration.compiled.ranges import Range, unsafe
from gapless.properties.exploration.compiled.search_program import search_functions
from gapless.properties.exploration.compiled.steps import NotExact, SearchSteps
from gapless.properties.exploration.graph import Call
from gapless.properties.exploration.native.first_states import FirstStates
from gapless.properties.exploration.native.graph import NativeGraph
from gapless.properties.exploration.native.tables import Ints, PackingCache, Steps, Tables
from gapless.properties.exploration.packing import LIMIT, PackedField, StateLayout
from gapless.spec.catalog import END, Spec, State
from gapless.spec.language import Map, Refused
from gapless.spec.reading.map_keys import key_counts
from gapless.spec.reading.quantification import parameters
from gapless.spec.reading.trees.decision_trees import constant_map, names_its_ends, state_of_terms

DONE, MORE, FULL, WIDE_KEYS, WIDE_VALUES, EXACT, BROKEN_STATE, BROKEN_STEP, TOO_MANY, JOINED = range(10)
"""The ends of a stretch of the search: all states are explored; its share is; there is no room for more; a key or a
value does not fit; a number leaves 64 bits; a property is false; there are more states than are wanted; so many
steps as are wanted are kept."""

WIDEST = 512  # keys that a Map may have: the text of a search speaks of each, and takes the longer to compile
BUDGET = 20_000  # states between two looks at the clock, and at Ctrl-C
BLOCK = 512  # states that steps make before they are looked up, all together: so memory is waited for once
ALL = 1 << 62
SAMPLED = 20_000  # calls that are tried at random, to see how much room values need

OnProgress = Callable[[int, int], None]
"""Called now and then with the number of states that are explored, and of those that were met."""


class NotCompilable(Exception):  # noqa: N818 - its message says all.
    """A spec, a property or a bound cannot be compiled, or numbers need more than 64 bits."""


@dataclass(frozen=True)
class SearchTask:
    """The task of a search: its first states, the calls, and the properties with the rows of numbers to ask for."""

    starts: Sequence[State]
    calls: Mapping[str, Sequence[tuple[int, ...]]]
    alone: Sequence[tuple[Callable[..., bool], Sequence[str], Sequence[tuple[int, ...]]]]
    pairs: Sequence[tuple[Callable[..., bool], Sequence[str], Sequence[tuple[int, ...]]]]


class SearchEnd(NamedTuple):
    """The end of a search; where something is broken, in which state, or on the way there from which one."""

    status: int
    source: int
    target: int


class NativeSearch:
    """The search of one spec within one bound, compiled. Raises NotCompilable."""

    def __init__(self, spec: Spec, bound: Bound, allowed: Sequence[bool], asked: SearchTask) -> None:
        self.spec, self.bound, self.asked = spec, bound, asked
        self.allowed = tuple(allowed)
        self.first = FirstStates(spec, asked.starts)
        asks = *spec.invariants(), *spec.step_properties(), *spec.at_rest, bound.within
        if constant := constant_map(*spec.steps, *asks):
            raise NotCompilable(f"it speaks of `{constant}`, a Map that is no field")
        before = state_of_terms(spec.initial)
        for holds in spec.at_rest:
            if parameters(holds) and not names_its_ends(holds, before):
                name = next(iter(parameters(holds)))
                raise NotCompilable(f"{holds.__name__} does not say between which numbers {name} lies")
        try:
            self._steps = SearchSteps(
                spec,
                asked.alone,
                asked.pairs,
                bound.within,
                allowed,
                dict(zip(asked.calls, np.diff(self.runs[1]).tolist(), strict=True)),
                {name: _last_of(every) for name, every in asked.calls.items()},
            )
        except NotExact as error:
            raise NotCompilable(str(error)) from error
        except NotSymbolic as error:
            raise NotCompilable(str(error)) from error
        except Exception as error:  # a user's functions may raise anything on values that are no numbers
            raise NotCompilable(f"it cannot be read without being called ({type(error).__name__}: {error})") from error
        self.reasons, self.kinds = tuple(self._steps.reasons), tuple(self._steps.kinds)
        self._spoken_of = self._steps.asked.spoken_of
        self._functions: dict[StateLayout, Mapping[str, Function]] = {}
        self._kept = PackingCache.of(spec, [node for node, _ in self._steps.functions.values()])
        if any(not -LIMIT < value < LIMIT for every in asked.calls.values() for args in every for value in args):
            raise NotCompilable("an argument is too large")

    @cached_property
    def is_compiled(self) -> bool:
        """True if it was compiled before."""
        packing = self._kept_packing
        return packing is not None and bool(self.functions(packing)["search"].code.is_kept)

    @cached_property
    def flat_calls(self) -> list[tuple[str, tuple[int, ...]]]:
        """Every action with its arguments, in the order in which they are tried."""
        return [(name, args) for name, every in self.asked.calls.items() for args in every]

    def run(self, limit: int, progress: OnProgress | None) -> NativeFound:
        """Explore all states, at most so many. Raises NotCompilable."""
        least = self._least
        kept = self._kept_packing
        seen = None if kept else self._seen(least)
        packing: StateLayout | None = kept or (seen and seen.roomier())
        whole = packing is not kept or not all(map(self.bound.within, self.asked.starts))
        while packing is not None:
            tables = self._tables(packing, limit, whole=whole)
            run = NativeRun(self, packing, tables, whole=whole)
            status = run.run(limit=limit, progress=progress)
            if not whole and status in {BROKEN_STATE, TOO_MANY}:
                whole = True
                continue
            if status == WIDE_KEYS:
                packing = packing.with_keys(packing.origin - 3 * packing.width // 2, 4 * packing.width)
                packing = packing if packing.most_places <= WIDEST else None
            elif status == WIDE_VALUES:
                packing = packing.widened(*run.wide)
            elif status == EXACT:
                packing = None
            else:
                met = int(tables.counts[1])
                if packing is not kept or met > self._kept.states(whole=whole):
                    inside = met - int(np.count_nonzero(tables.beyond[:met]))
                    self._kept.keep(self._next(packing, tables, status), met, inside)
                return NativeFound(
                    self, packing, tables, SearchEnd(status, int(tables.counts[0]), int(tables.counts[3])), whole
                )
        raise NotCompilable("a number is too large, or a Map has keys that lie far from one another")

    def whole(self, packing: StateLayout) -> NativeFound:
        """All states, those beyond the bound among them, where they were counted before."""
        tables = self._tables(packing, ALL, whole=True)
        status = NativeRun(self, packing, tables, whole=True).run()
        return NativeFound(
            self, packing, tables, SearchEnd(status, int(tables.counts[0]), int(tables.counts[3])), is_whole=True
        )

    @property
    def _kept_packing(self) -> StateLayout | None:
        """The packing of before, where all first states fit into it."""
        kept = self._kept.packing(self._least)
        return kept if kept is not None and self.first.fit(kept) else None

    def _tables(self, packing: StateLayout, limit: int, *, whole: bool) -> Tables:
        room = max(min(self._kept.states(whole=whole), limit), len(self.asked.starts)) + BLOCK + len(self.flat_calls)
        return Tables.new(packing, len(self.kinds), len(self.reasons), room, whole=whole)

    def _next(self, packing: StateLayout, tables: Tables, status: int) -> StateLayout:
        """The packing for the next time: into fewer words, if that can be."""
        fitting = packing.fitting(tables.states[: tables.counts[1]]) if status == DONE else packing
        for row, default in enumerate(
            self.first.defaults, len(packing.numbers)
        ):  # no state may have it, but a step may
            fitting = fitting.widened(row, default) or fitting
        return fitting if fitting.words < packing.words else packing

    def functions(self, packing: StateLayout) -> Mapping[str, Function]:
        """The search for states that are packed in one way. Raises NotCompilable."""
        if packing not in self._functions:
            self._require_64_bits(packing)
            self._functions[packing] = search_functions(self._steps, packing, self._constants)
        return self._functions[packing]

    def _require_64_bits(self, packing: StateLayout) -> None:
        """Raise NotCompilable where a number that a spec computes may leave 64 bits."""
        names = self.spec.scalars + self.spec.maps
        defaults = [int(getattr(self.spec.initial, name).default) for name in self.spec.maps]
        fields = {
            name: (min(one.least, *more), max(one.least + one.mask, *more))
            for name, one, more in zip(
                names, (*packing.numbers, *packing.maps),
                [*([0, 0],) * len(self.spec.scalars), *([one, one] for one in defaults)], strict=True,
            )
        }  # fmt: skip
        known = {"fields": fields, "arguments": self._argument_ranges, "variables": self._variable_ranges}
        found = unsafe(self._steps.lowering.terms, known, packing.most_places)
        if found is not None:
            raise NotCompilable("a number that it computes may leave 64 bits")

    @cached_property
    def _argument_ranges(self) -> dict[str, Range]:
        rows = zip(self.spec.arguments, self.arguments, strict=True)
        return {name: (int(row.min(initial=0)), int(row.max(initial=0))) for name, row in rows}

    @cached_property
    def _variable_ranges(self) -> dict[str, Range]:
        found: dict[str, Range] = {}
        for _, names, rows in (*self.asked.alone, *self.asked.pairs):
            for name, values in zip(names, zip(*rows, strict=True), strict=False):
                low, high = found.get(f"q_{name}", (0, 0))
                found[f"q_{name}"] = min(low, *values), max(high, *values)
        return found

    @property
    def _constants(self) -> dict[str, int]:
        """The constants of the calls that generated functions name."""
        runs, begins = self.runs
        known = {"CALLS": len(self.flat_calls), "ROW": max([1, *map(len, self._spoken_of)])}
        for code, (one, end) in enumerate(pairwise(begins.tolist())):
            calls = runs[one:end].tolist() or [[0, 0, 0]]
            known |= {
                f"RUNS_{code}_FIRST": one,
                f"RUNS_{code}_END": end,
                f"CALLS_{code}_LOW": calls[0][0] - calls[0][2],
            }
            known |= {f"CALLS_{code}_FIRST": calls[0][0], f"CALLS_{code}_END": calls[-1][1]}
        return known

    @cached_property
    def _least(self) -> StateLayout | None:
        """The least that the initial state fits into, with the keys that calls tell of."""
        spec, initial = self.spec, self.spec.initial
        if not self.first.are_small:
            return None
        hints = get_type_hints(type(initial))
        kinds = spec.key_types
        keys = {0}
        for name, step in spec.actions.items():
            of = get_type_hints(step)
            for at, parameter in enumerate(spec.parameters[name]):
                if of.get(parameter) in kinds:
                    keys.update(args[at] for args in self.asked.calls[name])
        begun = self.first.keys
        origin = min(*keys, *begun, 0)
        width = max(min(max(keys) + 2 - origin, 64), *(key + 1 - origin for key in begun), 1)
        packing = StateLayout(
            tuple(PackedField.holding(int(getattr(initial, name))) for name in spec.scalars),
            tuple(PackedField.holding(int(getattr(initial, name).default)) for name in spec.maps),
            origin,
            width,
            tuple(key_counts(type(initial))[name] == 2 for name in spec.maps),
            tuple(hints[name] for name in spec.scalars) + tuple(get_args(hints[name])[-1] for name in spec.maps),
        )
        return self.first.widened(packing) if packing.most_places <= WIDEST else None

    def _with_room(self, packing: StateLayout, state: State) -> StateLayout:
        """One that a state fits into, too, as far as that is possible."""
        for row, name in enumerate(self.spec.scalars):
            packing = packing.widened(row, int(getattr(state, name))) or packing
        for row, name in enumerate(self.spec.maps, len(self.spec.scalars)):
            for value in getattr(state, name).entries.values():
                packing = packing.widened(row, int(value)) or packing
        return packing

    def _seen(self, packing: StateLayout | None) -> StateLayout | None:
        """One with room for what some walks at random come to: for each packing, there is something to compile."""
        chance, calls, state = random.Random(0), self.flat_calls, self.asked.starts[0]  # noqa: S311 - no secret.
        for _ in range(SAMPLED if packing and calls else 0):
            name, args = chance.choice(calls)
            try:
                state = self.spec.actions[name](state, *args)
            except Refused:
                continue
            packing = self._with_room(packing, state)  # type: ignore[arg-type]
            if not self.bound.within(state):
                state = chance.choice(self.asked.starts)
        return packing

    @property
    def ways(self) -> int:
        """In how many ways a call may be accepted: as it is, or by a deviation."""
        return len(self.spec.deviations) + 1

    @cached_property
    def runs(self) -> tuple[Ints, Ints]:
        """Calls whose last argument grows by one each time, and the first run of each action.

        [runs, 3]: from which call to which, and what the last argument of the first one is.
        """
        runs: list[tuple[int, int, int]] = []
        begins = [0]
        at = 0
        for every in self.asked.calls.values():
            for before, args in zip([None, *every], every, strict=False):
                if before is None or not args or before[:-1] != args[:-1] or before[-1] + 1 != args[-1]:
                    runs.append((at, at, args[-1] if args else 0))
                at += 1
                runs[-1] = runs[-1][0], at, runs[-1][2]
            begins.append(len(runs))
        return np.array(runs, np.int64).reshape(-1, 3), np.array(begins, np.int64)

    @cached_property
    def rest(self) -> int:
        """From which code on calls but claim that all is at rest."""
        return next((self.ways * at for at, (name, _) in enumerate(self.flat_calls) if name == END), ALL)

    @cached_property
    def arguments(self) -> Ints:
        """The value that each call gives for every argument of the spec: [arguments, calls]."""
        args = np.zeros((len(self.spec.arguments), len(self.flat_calls)), np.int64)
        rows = {name: row for row, name in enumerate(self.spec.arguments)}
        for at, (action, given) in enumerate(self.flat_calls):
            for name, value in zip(self.spec.parameters[action], given, strict=True):
                args[rows[name], at] = value
        return args

    @cached_property
    def numbers(self) -> tuple[Ints, Ints]:
        """The rows of numbers for properties, one after the other, and the begin of those of each kind."""
        rows_of = {tuple(names): rows for _, names, rows in (*self.asked.alone, *self.asked.pairs)}
        every = [rows_of[names] for names in self._spoken_of]
        lows = np.cumsum([0, *map(len, every)])
        numbers = np.zeros((max(1, int(lows[-1])), max([1, *map(len, self._spoken_of)])), np.int64)
        for low, rows in zip(lows.tolist(), every, strict=False):
            for at, row in enumerate(rows):
                numbers[low + at, : len(row)] = row
        return numbers, lows


def _last_of(calls: Sequence[tuple[int, ...]]) -> range:
    """The last arguments of calls that are one run."""
    first = calls[0][-1] if calls and calls[0] else 0
    return range(first, first + len(calls))


class NativeRun:
    """A search with one packing, from the state on that its tables tell.

    `whole`: states beyond the bound are kept, too, and of each how it was met; otherwise they are judged and counted.
    """

    def __init__(self, search: NativeSearch, packing: StateLayout, tables: Tables, *, whole: bool) -> None:
        self.search, self.packing, self.tables, self.whole = search, packing, tables, whole
        self._escape = np.zeros(3, np.int64)

    @property
    def wide(self) -> tuple[int, int]:
        """The field that has no room for a value, and the value."""
        return int(self._escape[1]), int(self._escape[2])

    def run(
        self, *, limit: int = ALL, until: int = ALL, joins: int = ALL, kept: Steps | None = None,
        progress: OnProgress | None = None,
    ) -> int:  # fmt: skip
        """Explore, at most up to state `until`, and up to so many accepted calls; how that ended."""
        search, packing, tables = self.search, self.packing, self.tables
        native, most, runs = search.functions(packing), len(search.flat_calls), search.runs[0].reshape(-1)
        numbers, lows = search.numbers[0].reshape(-1), search.numbers[1]
        rows, words = BLOCK + most, packing.words
        steps = kept or Steps.room(0, 0)
        if not kept:
            search.first.put(packing, tables, search.bound.within)
            tables.fill_slots(native)
        after, ends, fill = np.zeros(rows * (words + 2), np.uint64), np.zeros(BLOCK, np.int64), np.zeros(3, np.int64)
        status, given = FULL, tuple[Any, ...]()
        while status in {MORE, FULL}:
            if status == FULL:
                if given:
                    tables.make_room(rows, native)
                given = (
                    runs, most, search.rest, search.arguments.reshape(-1), numbers, lows, limit, BUDGET, until, joins,
                    int(kept is not None), int(self.whole), tables.counts, self._escape, after, rows, fill, ends, BLOCK,
                    tables.states.reshape(-1), len(tables.states), tables.slots, tables.places, tables.mask,
                    tables.met_source, tables.met_call, tables.beyond.view(np.uint8), tables.ahead, tables.accepted,
                    steps.starts, steps.targets, len(steps.targets), steps.calls, tables.refused,
                )  # fmt: skip
            try:
                status = native["search"](*given)
            except LanguageError as error:
                raise NotCompilable(str(error)) from error
            if progress:
                progress(int(tables.counts[0]), int(tables.counts[1]))
        if not self.whole:
            joined = int(tables.accepted.sum())
            tables.counts[2], tables.counts[4] = joined, joined - int(fill[1])
        return int(status)


# -- what was found ------------------------------------------------------------------------------------------------


@dataclass
class NativeFound:
    """The result of a native search."""

    search: NativeSearch
    packing: StateLayout
    tables: Tables
    ended: SearchEnd
    is_whole: bool

    @cached_property
    def whole(self) -> NativeFound:
        """The search again, with the states beyond the bound, and the call that led to each."""
        return self if self.is_whole else self.search.whole(self.packing)

    def graph(self) -> NativeGraph:
        """The states, and what joins them."""
        return NativeGraph(self)

    def state(self, number: int) -> State:
        """The state that a row stands for."""
        spec = self.search.spec
        numbers, maps = self.packing.unpacked(self.tables.states[number].tolist())
        fields: dict[str, Any] = {
            name: type(getattr(spec.initial, name))(value) for name, value in zip(spec.scalars, numbers, strict=True)
        }
        for m, (name, values) in enumerate(zip(spec.maps, maps, strict=True)):
            default = getattr(spec.initial, name).default
            placed = zip(self.packing.keys(m), values, strict=True)
            entries = {key: value for key, value in placed if value != default}
            fields[name] = Map(default, immutables.Map(entries))
        return type(spec.initial)(**fields)

    def alike(self, fields: Sequence[str]) -> tuple[Ints, Ints]:
        """States of which no two agree in these fields, and for each state the place of the one that does."""
        spec = self.search.spec
        mask = self.packing.mask_of([name in fields for name in (*spec.scalars, *spec.maps)])
        rows = self.tables.states[: int(self.tables.counts[1])] & mask
        kept = rows[:, mask != 0]
        key = kept[:, 0] if kept.shape[1] == 1 else np.ascontiguousarray(kept).view(f"V{8 * kept.shape[1]}").reshape(-1)
        if not kept.shape[1]:
            return np.zeros(1, np.int64), np.zeros(len(rows), np.int64)
        _, firsts, numbers = np.unique(key, return_index=True, return_inverse=True)
        return firsts, numbers

    def call(self, code: int) -> Call:
        """A call that was accepted, by the number of the call and of the way to take it."""
        at, way = divmod(code, self.search.ways)
        deviations = self.search.spec.deviations
        return Call(*self.search.flat_calls[at], deviations[way - 1].step.__name__ if way else None)

    @cached_property
    def again(self) -> tuple[Steps, Ints]:
        """The accepted calls, and how often each reason refused in the states that every call was tried in.

        Every explored state is left again. So a search keeps states only, of which there are ten times fewer than
        calls. They are wanted where a graph is drawn, or where a search ended early.
        """
        if not self.is_whole:
            return self.whole.again
        counts = self.tables.counts
        explored, met, joined = (int(count) for count in counts[:3])
        steps = Steps.room(explored + 1, joined + BLOCK + 2 * len(self.search.flat_calls))
        again = replace(
            self.tables,
            accepted=np.zeros_like(self.tables.accepted),
            refused=np.zeros_like(self.tables.refused),
            counts=np.array([0, met, 0, 0, 0], np.int64),
        )
        run = NativeRun(self.search, self.packing, again, whole=True)
        run.run(until=explored, kept=steps)
        refused = again.refused.copy()
        if joined > again.counts[2]:
            run.run(until=explored + 1, joins=joined, kept=steps)
        return Steps(steps.starts[: explored + 1], steps.targets[:joined], steps.calls[:joined]), refused

    def accepted(self) -> dict[str, int]:
        """The number of times that each action was taken as it is, and each deviation."""
        spec = self.search.spec
        counted = dict.fromkeys(spec.actions, 0)
        counted |= {d.step.__name__: 0 for d, on in zip(spec.deviations, self.search.allowed, strict=False) if on}
        if self.ended.status != DONE:  # native code has counted what lies behind the last one, too
            codes, counts = np.unique(self.again[0].calls, return_counts=True)
            for call, count in zip(map(self.call, codes.tolist()), counts.tolist(), strict=True):
                counted[call.deviation or call.action] += count
            return counted
        for (action, way), count in zip(self.search.kinds, self.tables.accepted.tolist(), strict=True):
            if count:
                counted[spec.deviations[way - 1].step.__name__ if way else action] += count
        return counted

    def refusals(self) -> Counter[tuple[str, str]]:
        """The number of refusals by step and rule, in all states that were left by every call."""
        counted = Counter[tuple[str, str]]()
        refused = self.tables.refused if self.ended.status == DONE else self.again[1]
        for reason, count in zip(self.search.reasons, refused[1:].tolist(), strict=True):
            counted[reason] += count
        return +counted
