"""Writes a spec's search loop: its steps as `traces.replay` compiles them, and its properties read the same way.

A state is a row of integers: its numbers, and then its Maps as windows, beyond which each has its default. The state
that a step is taken from stands behind the one that the step makes, so that step properties see both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gapless.spec.catalog import Spec
from gapless.spec.language import reader
from gapless.traces.replay.fragments import Code, Window
from gapless.traces.replay.kernel_source import CALLED, HEAD, LIMIT, Writer, tree_of, truth

Property = tuple[Callable[..., bool], Sequence[str]]
"""What holds, behind its states, of numbers of these names."""


class SearchWriter(Writer):
    """Writes one spec's search loop.

    `alone`: what holds of every state · `pairs`: of those before and after a step · `within`: whether steps are taken
    from a state. Reading them raises what they raise where one cannot be read without being called.
    """

    def __init__(
        self, spec: Spec, alone: Sequence[Property], pairs: Sequence[Property], within: Callable[[Any], bool]
    ) -> None:
        super().__init__(spec)
        self.alone, self.pairs, self.within = alone, pairs, within
        scalars, maps = len(spec.scalars), len(spec.maps)
        before: dict[str, Any] = {name: Code(f"s_{row}") for row, name in enumerate(spec.scalars)}
        for column, name in enumerate(spec.maps):
            before[name] = Window(maps + column, name, int(getattr(spec.initial, name).default))
        self.before = type(spec.initial)(**before)
        self.places |= {f"s_{row}": f"now[{scalars + row}]" for row in range(scalars)}

    def source(self) -> str:
        """The whole file."""
        spec, roots, steps = self.spec, {}, ""
        for code, (name, action) in enumerate(spec.actions.items()):
            roots[f"step_{code}"] = self.step(action, name, bounded=True)
            steps += STEP.format(code=code, called=CALLED)
            for number, deviation in enumerate(spec.deviations):
                if deviation.instead_of is action:
                    roots[f"instead_{number}"] = self.step(deviation.step, name)
                    steps += STAND_IN.format(number=number, number_1=number + 1, called=CALLED)
            steps += TAKEN.format(ways=len(spec.deviations) + 1)
        asked: list[tuple[Callable[..., bool], Sequence[str], tuple[Any, ...]]] = [
            *((holds, names, (self.state,)) for holds, names in self.alone),
            *((holds, names, (self.before, self.state)) for holds, names in self.pairs),
        ]
        properties = "".join(self.property(number, *one) for number, one in enumerate(asked))
        inside = self._function("is_within", self._truth(self.within, self.state), self.places)
        head = HEAD.format(spec=spec.name, limit=LIMIT).replace("from numba", "import numpy as np\nfrom numba") + WORDS
        large = " or ".join(f"not -LIMIT < now[{row}] < LIMIT" for row in range(len(spec.scalars))) or "False"
        return (
            head + self.quantifiers.source() + self.functions.source(roots) + properties + inside
            + self._judges("of_a_state", range(len(self.alone)))
            + self._judges("of_a_step", range(len(self.alone), len(asked)))
            + LOOP.format(
                scalars=len(spec.scalars), maps=len(spec.maps), steps=steps, actions=len(spec.actions), large=large
            )
        )  # fmt: skip

    def property(self, number: int, holds: Callable[..., bool], names: Sequence[str], states: tuple[Any, ...]) -> str:
        """Whether a property holds for the numbers of row `e`, and whether it does for all of some rows."""
        places = {name: place for name, place in self.places.items() if name.startswith("s_")}
        places |= {f"a_{name}": f"args[e, {column}]" for column, name in enumerate(names)}
        body = self._truth(holds, *states, *(Code(f"a_{name}") for name in names))
        return self._function(f"is_{number}", body, places) + ALWAYS.format(number=number)

    def _truth(self, holds: Callable[..., bool], *given: Any) -> str:
        token = reader.set(self.quantifiers)
        try:
            return truth(tree_of(holds, *given), "    ") + "    return True\n"
        finally:
            reader.reset(token)

    def _function(self, name: str, body: str, places: dict[str, str]) -> str:
        self.places, kept = places, self.places
        try:
            return FUNCTION.format(name=name, called=CALLED, loads=self.loads(body), body=body)
        finally:
            self.places = kept

    @staticmethod
    def _judges(name: str, numbers: range) -> str:
        asked = "".join(JUDGED.format(number=number) for number in numbers)
        return JUDGE.format(name=name, asked=asked)


FUNCTION = """

@njit
def {name}({called}):
{loads}{body}"""

ALWAYS = """

@njit
def always_{number}(low, high, now, args, windows, origin, width, escape):
    for e in range(low, high):
        if not is_{number}(e, now, args, windows, origin, width, escape):
            return False
    return True
"""

JUDGE = """

@njit
def {name}(lows, now, numbers, windows, origin, width, escape):
{asked}    return True
"""

JUDGED = """    low, high = lows[{number}], lows[{number} + 1]
    if not always_{number}(low, high, now, numbers, windows, origin, width, escape):
        return False
"""

WORDS = '''

@njit
def most(windows, width, column, default):
    found, best = False, default
    for place in range(width):
        value = windows[place, column]
        if value != default and (value > best or not found):
            found, best = True, value
    return best


@njit
def held(windows, width, column, default):
    count = 0
    for place in range(width):
        count += windows[place, column] != default
    return count


@njit
def seen(row, states, hashes, slots, h):
    """Where a state is in the table, or would be."""
    mask = len(slots) - 1
    slot = np.int64(h & np.uint64(mask))
    while slots[slot] >= 0:
        n = slots[slot]
        if hashes[n] == h:
            same = True
            for k in range(len(row)):
                same = same and states[n, k] == row[k]
            if same:
                break
        slot = (slot + 1) & mask
    return slot


@njit(cache=True)
def fill(hashes, count, slots):
    """The table of the first so many states."""
    mask = len(slots) - 1
    for n in range(count):
        slot = np.int64(hashes[n] & np.uint64(mask))
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = n
'''

STEP = """            for e in range(firsts[{code}], firsts[{code} + 1]):
                way = 0
                why = step_{code}({called})
                if why > 0:
                    refused[why] += 1
"""

STAND_IN = """                if why > 0 and allowed[{number}]:
                    other = instead_{number}({called})
                    if other > 0:
                        refused[other] += 1
                    else:
                        why = other
                        way = {number_1}
"""

TAKEN = """                if escape[0] != 0:
                    return 4
                if why > 0:
                    continue
                if why < 0:
                    return 5
                status = taken(
                    source, e * {ways} + way, now, windows, origin, width, escape, numbers, lows, counts, row, states,
                    hashes, slots, met_source, met_call, beyond, targets, calls,
                )
                if status != 0:
                    return status
                restore(now, windows, width)
"""

LOOP = """

@njit
def restore(now, windows, width):
    for k in range({scalars}):
        now[k] = now[{scalars} + k]
    for place in range(width):
        for k in range({maps}):
            windows[place, k] = windows[place, {maps} + k]


@njit
def taken(
    source, call, now, windows, origin, width, escape, numbers, lows, counts, row, states,
    hashes, slots, met_source, met_call, beyond, targets, calls,
):
    h = np.uint64(14695981039346656037)
    wide = False
    for k in range({scalars}):
        value = now[k]
        row[k] = value
        wide = wide or row[k] != value
        h = (h ^ np.uint64(value)) * np.uint64(1099511628211)
    k = {scalars}
    for place in range(width):
        for m in range({maps}):
            value = windows[place, m]
            row[k] = value
            wide = wide or row[k] != value
            h = (h ^ np.uint64(value)) * np.uint64(1099511628211)
            k += 1
    if wide:
        return 3
    h ^= h >> np.uint64(29)
    slot = seen(row, states, hashes, slots, h)
    target = slots[slot]
    if target < 0:
        target = counts[1]
        counts[1] += 1
        slots[slot] = target
        hashes[target] = h
        states[target] = row
        met_source[target] = source
        met_call[target] = call
        beyond[target] = not is_within(0, now, numbers, windows, origin, width, escape)
        right = of_a_state(lows, now, numbers, windows, origin, width, escape)
        if escape[0] != 0:
            return 4
        if not right:
            counts[3] = target
            return 6
    at = counts[2]
    targets[at] = target
    calls[at] = call
    counts[2] = at + 1
    right = of_a_step(lows, now, numbers, windows, origin, width, escape)
    if escape[0] != 0:
        return 4
    if not right:
        counts[3] = target
        return 7
    return 0


@njit(nogil=True, cache=True)
def search(
    firsts, args, numbers, lows, allowed, limit, budget, origin, width, now, windows, escape, counts, row, states,
    hashes, slots, met_source, met_call, beyond, starts, targets, calls, refused,
):
    most_calls = firsts[{actions}]
    first = counts[0]
    while counts[0] < counts[1]:
        source = counts[0]
        if counts[1] > limit:
            return 8
        if source - first >= budget:
            return 1
        if counts[1] + most_calls > len(states) or 2 * (counts[1] + most_calls) > len(slots):
            return 2
        if counts[2] + most_calls > len(targets):
            return 2
        if not beyond[source]:
            for k in range({scalars}):
                now[{scalars} + k] = states[source, k]
            k = {scalars}
            for place in range(width):
                for m in range({maps}):
                    windows[place, {maps} + m] = states[source, k]
                    k += 1
            restore(now, windows, width)
            if {large}:
                return 5
{steps}        counts[0] = source + 1
        starts[source + 1] = counts[2]
    return 0
"""
