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
from gapless.traces.replay.kernel_source import (
    CALLED,
    HEAD,
    LIMIT,
    LOOKED_BELOW,
    Writer,
    deeper,
    names_in,
    tree_of,
    truth,
)

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
            steps += STEP.format(branch="elif" if code else "if", code=code, called=CALLED)
            for number, deviation in enumerate(spec.deviations):
                if deviation.instead_of is action:
                    roots[f"instead_{number}"] = self.step(deviation.step, name)
                    steps += STAND_IN.format(number=number, called=CALLED)
        alone = [(holds, names, (self.state,)) for holds, names in self.alone]
        pairs = [(holds, names, (self.before, self.state)) for holds, names in self.pairs]
        judges = self._judge("of_a_state", alone, 0) + self._judge("of_a_step", pairs, len(alone))
        inside = FUNCTION.format(name="is_within", body=self._loaded(self._truth(self.within, self.state)))
        head = (
            HEAD.replace(LOOKED_BELOW, "")
            .format(spec=spec.name, limit=LIMIT)
            .replace("from gapless", "import numpy as np\n\nfrom gapless", 1)
            + WORDS
        )
        large = " or ".join(f"not -LIMIT < now[{row}] < LIMIT" for row in range(len(spec.scalars))) or "False"
        loop = LOOP.format(
            scalars=len(spec.scalars), maps=len(spec.maps), steps=steps, large=large, ways=len(spec.deviations) + 1
        )
        return head + self.quantifiers.source() + self.functions.source(roots) + judges + inside + loop

    def _judge(self, name: str, properties: Sequence[tuple[Any, Sequence[str], tuple[Any, ...]]], first: int) -> str:
        """A function that says whether all of them hold, each for the rows of its numbers."""
        body = ""
        for number, (holds, names, states) in enumerate(properties, first):
            asked = self._truth(holds, *states, *(Code(f"a_{name}") for name in names))
            if names:
                given = "".join(f"    a_{name} = numbers[e, {column}]\n" for column, name in enumerate(names))
                asked = EACH.format(number=number, body=deeper(given + asked))
            body += asked
        return FUNCTION.format(name=name, body=self._loaded(body))

    def _truth(self, holds: Callable[..., bool], *given: Any) -> str:
        """The lines that return False where it does not hold."""
        token = reader.set(self.quantifiers)
        try:
            return truth(tree_of(holds, *given), "    ")
        finally:
            reader.reset(token)

    def _loaded(self, body: str) -> str:
        """The lines, behind those that load what they look at of the states."""
        names = [name for name in names_in(body) if name.startswith("s_")]
        return "".join(f"    {name} = {self.places[name]}\n" for name in names) + body


FUNCTION = """

@njit
def {name}(now, numbers, lows, windows, origin, width, escape):
{body}    return True
"""

EACH = """    for e in range(lows[{number}], lows[{number} + 1]):
{body}"""

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


@njit(forceinline=True)
def seen(words, states, hashes, slots, h):
    """Where a state is in the table, or would be."""
    mask = len(slots) - 1
    slot = np.int64(h & np.uint64(mask))
    while slots[slot] >= 0:
        n = slots[slot]
        if hashes[n] == h:
            same = True
            for k in range(len(words)):
                same = same and states[n, k] == words[k]
            if same:
                break
        slot = (slot + 1) & mask
    return slot


@njit(cache=True)
def hash_of(words):
    h = np.uint64(14695981039346656037)
    for word in words:
        h = (h ^ word) * np.uint64(1099511628211)
        h ^= h >> np.uint64(32)
    return h


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

STEP = """                {branch} act == {code}:
                    why = step_{code}({called})
                    if why > 0:
                        refused[why] += 1
"""

STAND_IN = """                    if why > 0 and allowed[{number}]:
                        other = instead_{number}({called})
                        if other > 0:
                            refused[other] += 1
                        else:
                            why = other
                            way = {number} + 1
"""

LOOP = """

@njit(forceinline=True)
def restore(now, windows, width):
    for k in range({scalars}):
        now[k] = now[{scalars} + k]
    for place in range(width):
        for k in range({maps}):
            windows[place, k] = windows[place, {maps} + k]


@njit(forceinline=True)
def taken(
    source, call, now, windows, origin, width, escape, numbers, lows, counts, row, words,
    states, hashes, slots, met_source, met_call, beyond, targets, calls,
):
    wide = False
    for k in range({scalars}):
        value = now[k]
        row[k] = value
        wide = wide or row[k] != value
    k = {scalars}
    for place in range(width):
        for m in range({maps}):
            value = windows[place, m]
            row[k] = value
            wide = wide or row[k] != value
            k += 1
    if wide:
        return 3
    h = hash_of(words)
    slot = seen(words, states, hashes, slots, h)
    target = slots[slot]
    if target < 0:
        target = counts[1]
        counts[1] += 1
        slots[slot] = target
        hashes[target] = h
        for k in range(len(words)):
            states[target, k] = words[k]
        met_source[target] = source
        met_call[target] = call
        beyond[target] = not is_within(now, numbers, lows, windows, origin, width, escape)
        right = of_a_state(now, numbers, lows, windows, origin, width, escape)
        if escape[0] != 0:
            return 4
        if not right:
            counts[3] = target
            return 6
    at = counts[2]
    targets[at] = target
    calls[at] = call
    counts[2] = at + 1
    right = of_a_step(now, numbers, lows, windows, origin, width, escape)
    if escape[0] != 0:
        return 4
    if not right:
        counts[3] = target
        return 7
    return 0


@njit(nogil=True, cache=True)
def search(
    action, args, numbers, lows, allowed, limit, budget, origin, width, now, windows, escape, counts, row, words,
    states, values, hashes, slots, met_source, met_call, beyond, starts, targets, calls, refused,
):
    most_calls = len(action)
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
                now[{scalars} + k] = values[source, k]
            k = {scalars}
            for place in range(width):
                for m in range({maps}):
                    windows[place, {maps} + m] = values[source, k]
                    k += 1
            restore(now, windows, width)
            if {large}:
                return 5
            for e in range(len(action)):
                act = action[e]
                why = 0
                way = 0
{steps}                if escape[0] != 0:
                    return 4
                if why > 0:
                    continue
                if why < 0:
                    return 5
                status = taken(
                    source, e * {ways} + way, now, windows, origin, width, escape, numbers, lows, counts, row, words,
                    states, hashes, slots, met_source, met_call, beyond, targets, calls,
                )
                if status != 0:
                    return status
                restore(now, windows, width)
        counts[0] = source + 1
        starts[source + 1] = counts[2]
    return 0
"""
