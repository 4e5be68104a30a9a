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

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gapless.properties.exploration.following import Answers, follows
from gapless.properties.exploration.loop_text import (
    EACH_BETWEEN,
    EACH_OF,
    FORGET,
    FORGET_WORD,
    FUNCTION,
    HASH,
    HASH_WORD,
    JUST_ONE,
    LOOP,
    MADE,
    MAP,
    QUANTIFIER,
    SLOTS,
    STORE,
    STORED,
    TAKEN,
)  # fmt: skip
from gapless.properties.exploration.native_tries import Tries
from gapless.properties.exploration.packing import Packing
from gapless.spec import forking
from gapless.spec.catalog import Spec
from gapless.spec.language import Reader, reader
from gapless.traces.replay.fragments import Code, Forget, Put, Reads, Window, reads_of, text_of, zero_asked_about
from gapless.traces.replay.kernel_source import Subtree, Writer, deeper, names_in, truth

Property = tuple[Callable[..., bool], Sequence[str], Sequence[tuple[int, ...]]]
"""What holds, behind its states, of numbers of these names, and the rows of numbers that it is asked for."""

MADE_WITH = "after, mask, slots, fill, refused, escape, numbers, lows"
CALLED = f"e, args, row, {MADE_WITH}"

LEFT_ALONE = Code("left_alone(escape)")
"""What becomes of a function that divides by 0: the search is left to the plain functions, which raise there."""

NAME = re.compile(r"-?\d+|[as]_\w+")
NUMBERS = re.compile(r"\b[aqsog]_\w+")
POINTERS = re.compile(r"\b(row|new)\b")
PLACED = "WORD", "SHIFT", "LEAST", "MASK"
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
    return "".join(f"{name}, " for name in dict.fromkeys((*NUMBERS.findall(body), *POINTERS.findall(body))))


def tree_of(function: Callable[..., Any], *args: Any, known: forking.Known = follows) -> Any:
    """All ways through a function of fragments, as one tree of the questions that have two answers."""

    def left_alone_at_0(*given: Any) -> Any:
        try:
            return function(*given)
        except ZeroDivisionError:
            return LEFT_ALONE

    token = zero_asked_about.set(True)
    try:
        return forking.decision_tree(left_alone_at_0, *args, known=known, key=_as_written)
    finally:
        zero_asked_about.reset(token)


def _as_written(question: Code) -> str:
    return question.text


def reads_in(tree: Any) -> Reads:
    """What a tree's questions and outcomes look at."""
    if isinstance(tree, forking.Leaf):
        return reads_of(tree.outcome)
    return reads_of(tree.question) | reads_in(tree.yes) | reads_in(tree.no)


class SearchWriter(Writer):
    """Writes one spec's search loop, for states that are packed in one way.

    `alone`: what holds of every state · `pairs`: of those before and after a step · `within`: whether steps are taken
    from a state · `allowed`: which deviations may stand in for what is refused. Reading them raises what they raise
    where one cannot be read without being called.
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
    ) -> None:
        super().__init__(spec)
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
        self.kind = 0
        self.checks: dict[str, int] = {}  # what is asked of a state that a step leads to, by its text
        self.check = 0
        self.facts: tuple[forking.Turn, ...] = ()  # the answers that led to where an effect is written
        self.functions: Tries = Tries(self.loads, self.called)
        token = reader.set(self.quantifiers)
        try:
            self._asked_alone = [(one, self._alone(one)) for one in alone]
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
            roots[f"try_{code}"] = self.functions.guarded(code, root, last, one_run=self.runs[name] == 1)
            taken += TAKEN.format(code=code, called=f"runs, {CALLED.removeprefix('e, ')}")
        self.functions.source(instead)
        for name, numbers in self.instead.items():
            self.functions.written.append(_stood_in(f"stand_in_{name}", numbers))
        steps = self.functions.source(roots)
        inside = self._function("is_within", self._truth(self.within, self.state), "row, escape, numbers, lows")
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
        self.kind, self.way = len(self.kinds), way
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
        code = f"e * {self.ways} + {self.way} + {(self.kind << 32) + (self.check << 48)}"
        begin = "    j = fill[0]\n    fill[0] = j + 1\n    new = ref(after, j * (WORDS + 2))\n    opened(row, new)\n"
        judged = self._judged(made)
        if judged:
            judged = f"    code = -1 - code\n    good = 1\n{judged}    if good:\n        code = -1 - code\n"
        ended = "    return made_of(new, code, mask, slots)\n"
        return f"{begin}{stored}    code = {code}\n{judged}{ended}"

    def _judged(self, made: Any) -> str:
        """The lines that set `good` to 0 where a step property does not hold of a step, if its needs do not say so."""
        spec = self.spec
        after: dict[str, Any] = {name: getattr(made, name) for name in spec.scalars}
        for column, name in enumerate(spec.maps):
            now, then = getattr(self.state, name), getattr(made, name)
            after[name] = now if then is now else PackedMap(column, name, now.default, words="new")
        state = type(spec.initial)(**after)
        bodies: dict[tuple[str, ...], tuple[str, Sequence[Any]]] = {}
        known = Answers(self.facts if self.few else ()).known
        token = reader.set(self.quantifiers)
        try:
            for holds, names, rows in self.pairs:
                tree = tree_of(holds, self.state, state, *(Code(f"q_{name}") for name in names), known=known)
                lines = _flag(tree, "    ")
                before = bodies.get(tuple(names), ("", rows))[0]
                bodies[tuple(names)] = before + lines, rows
        finally:
            reader.reset(token)
        return "".join(self._each(names, body, rows) for names, (body, rows) in bodies.items() if body)

    # -- properties

    def _alone(self, one: Property) -> Any:
        holds, names, _ = one
        return tree_of(holds, self.state, *(Code(f"q_{name}", frozenset({(f"q_{name}", "")})) for name in names))

    def _check(self, made: Sequence[Any]) -> int:
        """The number of what is asked of a state that a step leads to, in one of these ways."""
        keys = self._written(made)
        bodies: dict[tuple[tuple[str, ...], str], tuple[str, Sequence[Any]]] = {}
        for (_, names, rows), tree in self._asked_alone:
            reads = {(name, key) for name, key in reads_in(tree) if name in keys}
            if not reads or (isinstance(tree, forking.Leaf) and tree.outcome is True):
                continue
            wheres = {""}
            if len(names) == 1 and _between(rows) and all(key == f"q_{names[0]}" for _, key in reads):
                wheres = set[str]().union(*(keys[name] for name, _ in reads))
            for where in sorted(wheres) if "" not in wheres and len(wheres) <= FEW_KEYS else [""]:
                before = bodies.get((tuple(names), where), ("", rows))[0]
                bodies[tuple(names), where] = before + truth(tree, "    "), rows
        body = "".join(self._each(names, lines, rows, where) for (names, where), (lines, rows) in bodies.items())
        return self.checks.setdefault(body, len(self.checks))

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

    def _each(self, names: tuple[str, ...], body: str, rows: Sequence[tuple[int, ...]], where: str = "") -> str:
        """The lines, for all numbers of a kind, or for the number that is `where`."""
        if not names:
            return body
        ends = _between(rows) if len(names) == 1 else None
        if where and ends:
            return JUST_ONE.format(
                low=ends[0], high=ends[1], key=_of_old(where), name=f"q_{names[0]}", body=deeper(body)
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
            olds = dict.fromkeys(re.findall(r"\bo_(\w+)", body))
            loads += "".join(f"    o_{name} = {self.places[f's_{name}'].replace('row[', 'old[')}\n" for name in olds)
            arguments = dict.fromkeys(re.findall(r"\bg_(\w+)", body))
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


def _flag(tree: Any, indent: str) -> str:
    """The lines that set `good` to 0 where the tree's outcome is false."""
    if isinstance(tree, forking.Leaf):
        if tree.outcome is True:
            return ""
        return (
            f"{indent}good = 0\n"
            if tree.outcome is False
            else f"{indent}if not {text_of(tree.outcome)}:\n{indent}    good = 0\n"
        )
    yes, no = (_flag(child, indent + "    ") for child in (tree.yes, tree.no))
    if not yes and not no:
        return ""
    return f"{indent}if {text_of(tree.question)}:\n{yes or f'{indent}    pass' + chr(10)}" + (
        f"{indent}else:\n{no}" if no else ""
    )


def _stood_in(name: str, numbers: Sequence[int]) -> str:
    lines = "".join(f"    if instead_{number}({CALLED}):\n        return 1\n" for number in numbers)
    return f"\n\ndef {name}({CALLED}):\n{lines}    return 0\n"


def packed(text: str, spec: Spec, packing: Packing, known: Mapping[str, int]) -> str:
    """The whole text for states that are packed in one way; `known`: what else its constants are."""
    words = range(packing.words)
    known = {**known, "WORDS": packing.words, "ORIGIN": packing.origin, "WIDTH": packing.width, "SLOT": packing.slot}
    for field, (word, shift, least, mask) in enumerate(packing.rows.tolist()):
        known |= {f"F{field}_{name}": value for name, value in zip(PLACED, (word, shift, least, mask), strict=True)}
    each = HASH.format(
        more="".join(HASH_WORD.format(word=word) for word in words if word),
        same=" and ".join(f"row[{word}] == new[{word}]" for word in words),
        copied="".join(f"    new[{word}] = row[{word}]\n" for word in words),
    )
    each += SLOTS[packing.words == 1]
    blank = packing.packed(
        [int(getattr(spec.initial, name)) for name in spec.scalars],
        [getattr(spec.initial, name).cleared().__getitem__ for name in spec.maps],
    )
    for number in range(len(spec.maps)):
        bit, shift, _, _ = packing.rows[len(spec.scalars) + number].tolist()
        end = bit + (packing.width << shift)
        lines = ""
        for word in range(bit // 64, (end + 63) // 64):
            low, high = max(bit, 64 * word) - 64 * word, min(end, 64 * word + 64) - 64 * word
            lines += FORGET_WORD.format(low=64 * word, word=word, ones=(1 << high) - (1 << low), blank=blank[word])
        each += FORGET.format(number=number, field=len(spec.scalars) + number, words=lines)
    return _without_the_unused("".join(f"{name} = {value}\n" for name, value in known.items()), each + text)


def _without_the_unused(head: str, text: str) -> str:
    """The functions that somebody calls: the others would be compiled for nothing."""
    pieces = re.split(r"\n\n\n(?=@|def )", text)
    named = {match[1]: piece for piece in pieces if (match := re.search(r"^def (\w+)", piece, re.MULTILINE))}
    wanted, pending = set[str](), [name for name, piece in named.items() if piece.lstrip().startswith("@exported")]
    while pending:
        name = pending.pop()
        if name not in wanted:
            wanted.add(name)
            pending += [one for one in re.findall(r"\b(\w+)\(", named[name]) if one in named]
    return head + "".join(f"\n\n{piece}\n" for name, piece in named.items() if name in wanted)


def leaves(tree: Any) -> Iterator[Any]:
    """The outcomes of a tree."""
    if isinstance(tree, forking.Leaf):
        yield tree
    else:
        yield from leaves(tree.yes)
        yield from leaves(tree.no)
