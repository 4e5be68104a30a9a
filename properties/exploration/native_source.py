"""Writes a spec's search loop: its steps as `traces.replay` compiles them, and its properties read the same way.

A state is packed into a few words (`packing.py`), and never unpacked: a number of it is some bits of a word, and so is
what a Map holds at a key. What a step makes is that state's words with the difference added, so that only what it
writes costs anything.

What is asked of what a step makes is what its own needs do not say already (`following.py`): of a step property, what
is left behind the answers that led to the step's end; of an invariant, what looks at something that the step wrote. For
whoever leaves a state has judged it: all invariants held there, for every number, or the search had ended. One that
looks at none of the fields that were written says the same as before; one that speaks of a Map at its own number alone
says the same for all numbers but those where something was put.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gapless.properties.exploration.following import Answers
from gapless.properties.exploration.loop_text import (
    ACCEPTED,
    CLAIMED,
    COUNTED,
    EACH_BETWEEN,
    EACH_OF,
    FUNCTION,
    JUST_ONE,
    LOOP,
    MAP,
    QUANTIFIER,
    STORE,
    STORED,
    TAKEN,
)  # fmt: skip
from gapless.properties.exploration.native_bits import MANY, bits_of
from gapless.properties.exploration.native_tries import Tries
from gapless.properties.exploration.table_text import MADE
from gapless.properties.exploration.trees import LEFT_ALONE, answered, flag, leaves, left_of, reads_in, tree_of
from gapless.spec import forking
from gapless.spec.catalog import END, Spec
from gapless.spec.language import Reader, reader
from gapless.traces.replay.fragments import Code, Forget, Put, Window, reads_of, text_of
from gapless.traces.replay.kernel_source import Subtree, Writer, deeper, found_in, names_in, truth

Property = tuple[Callable[..., bool], Sequence[str], Sequence[tuple[int, ...]]]
"""What holds, behind its states, of numbers of these names, and the rows of numbers that it is asked for."""

MADE_WITH = "after, mask, slots, fill, accepted, refused, escape, numbers, lows, whole"
CALLED = f"e, args, row, {MADE_WITH}"

MOST = re.compile(r"\(most_(\d+)\(row\) <= (\d+)\)")  # what a bound says of the most that a Map holds
NAME = re.compile(r"-?\d+|[as]_\w+")
NUMBERS = r"\b[aqsog]_\w+"
POINTERS = r"\b(row|new)\b"
MANY_KEYS = 4096  # that a quantifier goes through at most
FEW_KEYS = 2  # that a step puts something at, up to which invariants are asked of these alone
EXPLAINED = 4_000  # ways through a step with properties behind them up to which what follows is looked for


class PackedMap(Window):
    """A Map of a packed state, `row`, or of what a step makes of it, `new`."""

    def __init__(self, column: int, field: str, default: int, *, words: str = "row", **effects: Any) -> None:
        super().__init__(column, field, default, **effects)
        self.words = words

    def there(self, key: Any) -> Any:
        """What lies at `key`."""
        where = text_of(key)
        return Code(f"map_{self.column}({self.words}, {where})", reads_of(key) | {(self.field, where)})

    def like(self, *, empty: bool, effects: Any) -> Window:
        """The same Map with other effects."""
        return PackedMap(self.column, self.field, self.default, words=self.words, empty=empty, effects=effects)

    def counted(self, word: str) -> Code:
        """The `most` that it holds, or how many keys are `held`."""
        return Code(f"{word}_{self.column}({self.words})", frozenset({(self.field, "any")}))


class Quantifiers(Reader):
    """Reads `all_between` as a loop in a function of its own."""

    def __init__(self) -> None:
        self.functions: dict[str, str] = {}  # names by body, for every path through a step asks again

    def source(self) -> str:
        """The functions that the steps call."""
        return "".join(
            QUANTIFIER.format(name=n, until=n.replace("holds", "until"), given=_given(b), body=b, widest=MANY_KEYS)
            for b, n in self.functions.items()
        )

    def all_between(self, low: Any, high: Any, holds: Callable[[Any], Any]) -> Code:
        """Whether it holds of all numbers between."""
        tree = tree_of(holds, Code("n"))
        body = truth(tree, " " * 8).replace("return False", "return 0")
        name = self.functions.setdefault(body, f"holds_{len(self.functions)}")
        given = f"{text_of(low)}, {text_of(high)}, {_given(body)}escape"
        return Code(f"{name}({given})", reads_of(low, high) | reads_in(tree))


def _given(body: str) -> str:
    return "".join(f"{name}, " for name in dict.fromkeys((*found_in(NUMBERS, body), *found_in(POINTERS, body))))


class SearchWriter(Writer):
    """Writes one spec's search loop, for states that are packed in one way.

    `alone`: what holds of every state · `pairs`: of those before and after a step · `within`: whether steps are taken
    from a state · `allowed`: which deviations may stand in for what is refused · `runs`, `numbers`: how many runs of
    calls each action has, and the last arguments of the first. Reading them raises what they raise where one cannot be
    read without being called.
    """

    called = CALLED

    def __init__(
        self,
        spec: Spec,
        alone: Sequence[Property],
        pairs: Sequence[Property],
        within: Callable[[Any], bool],
        allowed: Sequence[bool],
        runs: Mapping[str, int],
        numbers: Mapping[str, range],
    ) -> None:
        super().__init__(spec)
        self.numbers = numbers
        self.alone, self.pairs, self.within, self.runs = alone, pairs, within, runs
        self.quantifiers: Any = Quantifiers()
        for column, name in enumerate(spec.maps):
            object.__setattr__(self.state, name, PackedMap(column, name, int(getattr(spec.initial, name).default)))
        for n, name in enumerate(spec.scalars):
            self.places[f"s_{name}"] = f"(((row[F{n}_WORD] >> F{n}_SHIFT) & F{n}_MASK) + F{n}_LEAST)"
        self.places |= {f"a_{name}": f"args[{row} * CALLS + e]" for row, name in enumerate(spec.arguments)}
        self.ways = len(spec.deviations) + 1
        self.instead: dict[str, list[int]] = defaultdict(list)  # by action, the deviations that may stand in for it
        for number, deviation in enumerate(spec.deviations):
            if allowed[number]:
                self.instead[deviation.instead_of.__name__].append(number)
        self.spoken_of: dict[tuple[str, ...], int] = {}  # by names of numbers, where these stand
        self.kinds: list[tuple[str, int]] = []  # the actions, and ways to take them, that are counted
        self.action, self.kind = "", 0
        self.checks: dict[str, int] = {}  # what is asked of a state that a step leads to, by its text
        self.check = 0
        self.facts: tuple[forking.Turn, ...] = ()  # the answers that led to where an effect is written
        self.bounds: dict[str, str] = {}  # functions that say whether a state is within the bound, by their text
        self.functions: Tries = Tries(self.loads, self.called)
        token = reader.set(self.quantifiers)
        try:
            self._asked_alone = [(one, self._alone(one)) for one in alone]
            self._asked_within = answered(tree_of(within, self.state))
        finally:
            reader.reset(token)

    def source(self) -> str:
        """The whole text, but for what the packing of a state says (`packed`)."""
        spec, taken = self.spec, ""
        instead = {
            f"instead_{number}": self._step(spec.deviations[number].step, action, number + 1)
            for action, numbers in self.instead.items()
            for number in numbers
        }
        roots: dict[str, Subtree] = {}
        for code, (name, action) in enumerate(spec.actions.items()):
            root, last = self._step(action, name, 0), f"a_{(spec.parameters[name] or ('',))[-1]}"
            roots[f"try_{code}"] = self.functions.guarded(
                code, root, last, one_run=self.runs[name] == 1, numbers=self.numbers[name]
            )
            taken += TAKEN.format(code=code, called=f"runs, {CALLED.removeprefix('e, ')}")
        self.functions.source(instead)
        for name, numbers in self.instead.items():
            self.functions.written.append(_stood_in(f"stand_in_{name}", numbers))
        steps = self.functions.source(roots)
        inside = "".join(self._function(name, body, "row, escape, numbers, lows") for body, name in self.bounds.items())
        loop = LOOP.format(taken=taken, ways=self.ways)
        right = self._rights()
        maps = "".join(
            MAP.format(
                number=number, field=len(spec.scalars) + number, default=int(getattr(spec.initial, name).default)
            )
            for number, name in enumerate(spec.maps)
        )
        text: str = STORE + MADE + maps + self.quantifiers.source() + right + inside + steps + loop
        for python, ours in (("return False", "return 0"), ("return True", "return 1"), ("@njit\n", "")):
            text = text.replace(python, ours)
        return text

    # -- steps

    def tree(self, function: Callable[..., Any], action: str) -> Any:
        """All ways through a step, as a tree of the questions that have two answers."""
        args = [
            Code(f"a_{name}", frozenset({(name, "an argument of the event")})) for name in self.spec.parameters[action]
        ]
        token = reader.set(self.quantifiers)
        try:
            return tree_of(function, self.state, *args)
        finally:
            reader.reset(token)

    def _step(self, function: Callable[..., Any], action: str, way: int) -> Subtree:
        tree = self.tree(function, action)
        made = [leaf.outcome for leaf in leaves(tree) if isinstance(leaf.outcome, type(self.spec.initial))]
        self.action, self.kind, self.way = action, len(self.kinds), way
        self.kinds.append((action, way))
        self.check = self._check(made)
        self.few = len(made) * len(self.pairs) <= EXPLAINED
        return self.grown(tree, action, function.__name__)

    def grown(self, node: Any, action: str, step: str) -> Subtree:
        """The same as source, with what led there."""
        if isinstance(node, forking.Leaf):
            return super().grown(node, action, step)
        before, made = self.facts, []
        for answer, child in ((True, node.yes), (False, node.no)):
            self.facts = (*before, forking.Turn(node.question, answer, settled=False))
            made.append(self.grown(child, action, step))
        self.facts = before
        return self.functions.subtree(text_of(node.question), made[0], made[1])

    def refusal(self, action: str, step: str, leaf: Any) -> str:
        """The lines of a refusal: it is counted, and a deviation may stand in."""
        then = f"stand_in_{action}({CALLED})" if self.instead.get(action) and not self.way else "0"
        return f"    refused[{self.reason(action, step, leaf)}] += 1\n    return {then}\n"

    def effect(self, leaf: Any) -> str:
        """The lines of what a step makes."""
        stored, spec, made = "", self.spec, leaf.outcome
        if made is LEFT_ALONE:
            return f"    return {made.text}\n"
        for row, name in enumerate(spec.scalars):
            value = getattr(made, name)
            if text_of(value) == f"s_{name}":
                continue
            stored += STORED.format(value=text_of(value), before=f"s_{name}", field=row)
        for column, name in enumerate(spec.maps):
            window = getattr(made, name)
            if window.empty:
                stored += f"    forget_{column}(new, ORIGIN)\n"
            for effect in window.effects:
                if isinstance(effect, Put):
                    stored += f"    put_{column}(new, {text_of(effect.key)}, {text_of(effect.value)}, escape)\n"
                else:
                    stored += f"    forget_{column}(new, {text_of(effect.low)})\n"
        begin = "    new = ref(after, fill[0] * (WORDS + 2))\n    opened(row, new)\n"
        return f"{begin}{stored}" + ACCEPTED.format(
            kind=self.kind, ways=self.ways, way=self.way, check=self.check << 48, judged=self._judged(made),
            inside=self._inside(made), counted=(CLAIMED if self.action == END else COUNTED).format(check=self.check),
        )  # fmt: skip

    def _inside(self, made: Any) -> str:
        """What says whether a step leads to a state within the bound: the state that it leaves is."""
        put: list[str] = []

        def is_put(question: Any) -> bool:
            """Whether a Map holds no more than so much if what the step puts there is no more."""
            most = MOST.fullmatch(text_of(question))
            if not most:
                return False
            window = getattr(made, self.spec.maps[int(most[1])])
            if window.empty or len(window.effects) != 1 or window.default > int(most[2]):
                return False
            if isinstance(window.effects[0], Put):
                put.append(f"({text_of(window.effects[0].value)} <= {most[2]})")
            return True

        tree = left_of(self._asked_within, {*self._written([made])}, is_put)
        if not all(leaf.outcome is True for leaf in leaves(tree)):
            body = truth(tree, "    ")
            name = self.bounds.setdefault(body, f"is_within_{len(self.bounds)}")
            put.append(f"{name}(new, escape, numbers, lows)")
        return " & ".join(put) or "1"

    def _judged(self, made: Any) -> str:
        """The lines that set `good` to 0 where a step property does not hold of a step, if its needs do not say so."""
        spec = self.spec
        after: dict[str, Any] = {name: getattr(made, name) for name in spec.scalars}
        for column, name in enumerate(spec.maps):
            now, then = getattr(self.state, name), getattr(made, name)
            after[name] = now if then is now else PackedMap(column, name, now.default, words="new")
        state = type(spec.initial)(**after)
        bodies: dict[tuple[tuple[str, ...], str], tuple[str, Sequence[Any]]] = {}
        known = Answers(self.facts if self.few else ()).known
        token = reader.set(self.quantifiers)
        try:
            for one in self.pairs:
                for where, tree in self._asked_of_pair(one, made, state, known):
                    key = tuple(one[1]), where
                    bodies[key] = bodies.get(key, ("", one[2]))[0] + flag(tree, "    "), one[2]
        finally:
            reader.reset(token)
        return "".join(
            self._each(names, body, rows, where, of_old=False)
            for (names, where), (body, rows) in bodies.items()
            if body
        )

    def _asked_of_pair(self, one: Property, made: Any, after: Any, known: forking.Known) -> Iterator[tuple[str, Any]]:
        """What is asked of a step property's numbers: where something was put, and of all, which is told by `""`.

        One that looks into Maps at its own number alone is asked with the numbers where something was put as they are
        written, if it needs not be asked of others: there, Maps hold what they held.
        """
        holds, names, rows = one
        before, asked = self.state, [Code(f"q_{name}") for name in names]
        reads = set[tuple[str, str]]()

        def noting(path: forking.Path, question: Any) -> bool | None:
            reads.update(reads_of(question))
            return known(path, question)

        tree = tree_of(holds, before, after, *asked, known=noting)
        keys = self._written([made])
        written = [name for name in self.spec.maps if name in keys]
        wheres = sorted(set[str]().union(*(keys[name] for name in written)))
        here = len(names) == 1 and _between(rows) is not None and bool(written) and "" not in wheres
        if (
            here
            and len(wheres) <= FEW_KEYS
            and all(key == f"q_{names[0]}" for name, key in reads | reads_in(tree) if name in self.spec.maps)
        ):
            still = replace(made, **{name: getattr(before, name) for name in written})
            elsewhere = tree_of(holds, before, still, *asked, known=known)
            if all(leaf.outcome is True for leaf in leaves(elsewhere)):
                for where in wheres:
                    yield where, tree_of(holds, before, made, Code(where), known=known)
                return
        yield "", tree

    # -- properties

    def _alone(self, one: Property) -> Any:
        holds, names, _ = one
        return tree_of(holds, self.state, *(Code(f"q_{name}", frozenset({(f"q_{name}", "")})) for name in names))

    def _check(self, made: Sequence[Any]) -> int:
        """The number of what is asked of a state that a step leads to, in one of these ways."""
        keys = self._written(made)
        bodies: dict[tuple[tuple[str, ...], str], tuple[str, Sequence[Any]]] = {}
        at_once, count = "", itertools.count()
        for (_, names, rows), tree in self._asked_alone:
            reads = {(name, key) for name, key in reads_in(tree) if name in keys}
            if not reads or (isinstance(tree, forking.Leaf) and tree.outcome is True):
                continue
            wheres = {""}
            if len(names) == 1 and _between(rows) and all(key == f"q_{names[0]}" for _, key in reads):
                wheres = set[str]().union(*(keys[name] for name, _ in reads))
            few = "" not in wheres and len(wheres) <= FEW_KEYS
            lines = "" if few or len(names) != 1 else self._of_all(tree, f"q_{names[0]}", _between(rows), count)
            at_once += lines
            for where in sorted(wheres) if few else [""] if not lines else []:
                before = bodies.get((tuple(names), where), ("", rows))[0]
                bodies[tuple(names), where] = before + truth(tree, "    "), rows
        body = at_once + "".join(
            self._each(names, lines, rows, where) for (names, where), (lines, rows) in bodies.items()
        )
        return self.checks.setdefault(body, len(self.checks))

    @staticmethod
    def _of_all(tree: Any, name: str, ends: tuple[int, int] | None, count: Iterator[int]) -> str:
        """The lines that return False where a tree's outcome is false for some number; none where that needs a loop."""
        if ends is None or not ends[0] < ends[1] <= ends[0] + MANY:
            return ""
        numbers, lines, wrong = range(*ends), "", []
        pending = [(tree, str((1 << len(numbers)) - 1))]
        while pending:
            one, within = pending.pop()
            if isinstance(one, forking.Leaf) and isinstance(one.outcome, bool):
                wrong += [] if one.outcome else [within]
                continue
            at = next(count)
            bits = bits_of(text_of(one.outcome if isinstance(one, forking.Leaf) else one.question), name, numbers)
            if bits is None:
                return ""
            lines += f"    is_{at} = {bits}\n"
            if isinstance(one, forking.Leaf):
                wrong.append(f"({within} & ~is_{at})")
                continue
            for answer, child, sign in (("yes", one.yes, ""), ("no", one.no, "~")):
                if not (isinstance(child, forking.Leaf) and child.outcome is True):
                    lines += f"    {answer}_{at} = {within} & {sign}is_{at}\n"
                    pending.append((child, f"{answer}_{at}"))
        return f"{lines}    if ({' | '.join(wrong) or '0'}) != 0:\n        return False\n"

    def _written(self, made: Sequence[Any]) -> dict[str, set[str]]:
        """The fields that a step writes in one of its ways, and at which keys: none in `""`, where nobody can say."""
        keys: dict[str, set[str]] = {}
        for state in made:
            for name in self.spec.scalars:
                if text_of(getattr(state, name)) != f"s_{name}":
                    keys[name] = {""}
            for name in self.spec.maps:
                window = getattr(state, name)
                effects = (*window.effects, *([Forget(0)] if window.empty else []))
                if window is not getattr(self.state, name):
                    keys.setdefault(name, set()).update(text_of(e.key) if isinstance(e, Put) else "" for e in effects)
        return keys

    def _each(
        self,
        names: tuple[str, ...],
        body: str,
        rows: Sequence[tuple[int, ...]],
        where: str = "",
        *,
        of_old: bool = True,
    ) -> str:
        """The lines, for all numbers of a kind, or for the number that is `where`; `of_old`: in the state before."""
        if not names:
            return body
        ends = _between(rows) if len(names) == 1 else None
        if where and ends:
            return JUST_ONE.format(
                low=ends[0],
                high=ends[1],
                key=_of_old(where) if of_old else where,
                name=f"q_{names[0]}",
                body=deeper(body),
            )
        if ends:
            return EACH_BETWEEN.format(name=f"q_{names[0]}", low=ends[0], high=ends[1], body=deeper(body))
        number = self.spoken_of.setdefault(names, len(self.spoken_of))
        given = "".join(f"    q_{name} = numbers[e_{number} * ROW + {column}]\n" for column, name in enumerate(names))
        return EACH_OF.format(number=number, body=deeper(given + body))

    def _rights(self) -> str:
        """Whether the invariants hold of what a step led to, by the number of what is asked there."""
        text, chosen = "", ""
        given = "e, args, row, old, escape, numbers, lows"
        for body, number in self.checks.items():
            own = [name for name in names_in(body) if name.startswith("s_")]
            loads = self.loads(" ".join(own))
            olds = dict.fromkeys(found_in(r"\bo_(\w+)", body))
            loads += "".join(f"    o_{name} = {self.places[f's_{name}'].replace('row[', 'old[')}\n" for name in olds)
            arguments = dict.fromkeys(found_in(r"\bg_(\w+)", body))
            loads += "".join(f"    g_{name} = {self.places[f'a_{name}']}\n" for name in arguments)
            name = f"right_{number}"
            text += FUNCTION.format(name=name, given=given, body=loads + body).replace("@inline", "")
            chosen += f"    if check == {number}:\n        return {name}({given})\n"
        return text + f"\n\n@inline\ndef is_right(check, {given}):\n{chosen}    return 1\n"

    def _function(self, name: str, body: str, given: str) -> str:
        own = [one for one in names_in(body) if one.startswith("s_")]
        return FUNCTION.format(name=name, given=given, body=self.loads(" ".join(own)) + body)

    def _truth(self, holds: Callable[..., bool], *given: Any) -> str:
        """The lines that return False where it does not hold."""
        token = reader.set(self.quantifiers)
        try:
            tree = tree_of(holds, *given)
        finally:
            reader.reset(token)
        return "" if all(leaf.outcome is True for leaf in leaves(tree)) else truth(tree, "    ")


def _of_old(text: str) -> str:
    """A key as it was computed, of the state before and the arguments of the step."""
    return re.sub(r"\brow\b", "old", re.sub(r"\ba_(\w+)", r"g_\1", re.sub(r"\bs_(\w+)", r"o_\1", text)))


def _between(rows: Sequence[tuple[int, ...]]) -> tuple[int, int] | None:
    """From which number on, and up to which, rows of one number speak; None where some are left out."""
    if not rows or len(rows[0]) != 1:
        return None
    numbers = sorted({row[0] for row in rows})
    return (numbers[0], numbers[-1] + 1) if numbers == list(range(numbers[0], numbers[-1] + 1)) else None


def _stood_in(name: str, numbers: Sequence[int]) -> str:
    lines = "".join(f"    if instead_{number}({CALLED}):\n        return 1\n" for number in numbers)
    return f"\n\ndef {name}({CALLED}):\n{lines}    return 0\n"
