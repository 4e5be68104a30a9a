"""Writes a spec's search loop: its steps as `traces.replay` compiles them, and its properties read the same way.

A state is packed into a few words (`packing.py`). The one that steps are taken from is unpacked: its numbers into
`now`, its Maps into `windows`, beyond which each has its default. What a step makes is that state's words with the
difference added, so that only what it writes costs anything. Behind the state's own windows there is room for the Maps
of the one after it, for step properties that look at what a step wrote there.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gapless.properties.exploration.loop_text import EACH, FUNCTION, KEPT, LOOP, RANGES, STAND_IN, TAKEN, TRY, WORDS
from gapless.spec import forking
from gapless.spec.catalog import Spec
from gapless.spec.language import Refused, reader
from gapless.traces.replay.fragments import Code, Put, Window, text_of
from gapless.traces.replay.kernel_source import (
    HEAD,
    LIMIT,
    LOOKED_BELOW,
    Functions,
    Subtree,
    Writer,
    deeper,
    names_in,
    tree_of,
    truth,
)

Property = tuple[Callable[..., bool], Sequence[str]]
"""What holds, behind its states, of numbers of these names."""

SEEN = "now, windows, origin, width, escape"
NAME = re.compile(r"[as]_\w+|t\d+")
MADE = "row, after, codes, fill, layout, blank, refused, numbers, lows"
CALLED = f"e, args, {SEEN}, {MADE}"

INLINE = "@njit(forceinline=True)"  # what is given arrays is called at the price of some forty words a call
SMALL = 20_000  # letters of source below which quantifiers are inlined: compilers take longer the longer a function is
FEW = 4  # ways through a step below which what judges it is inlined
ENDS = re.compile(r"^( *)return( .*)$", re.MULTILINE)
COUNTED = re.compile(r"    refused\[(\d+)\] \+= 1\n    return False\n")
TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}
NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


class SearchWriter(Writer):
    """Writes one spec's search loop.

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
    ) -> None:
        super().__init__(spec)
        self.alone, self.pairs, self.within = alone, pairs, within
        self.ways = len(spec.deviations) + 1
        self.instead: dict[str, list[int]] = defaultdict(list)  # by action, the deviations that may stand in for it
        for number, deviation in enumerate(spec.deviations):
            if allowed[number]:
                self.instead[deviation.instead_of.__name__].append(number)
        self.judges: list[str] = []
        self.spoken_of: dict[tuple[str, ...], int] = {}  # by names of numbers, where these stand
        self.way = 0  # how the step that is being written is taken: 0, or by which deviation, from 1
        self.written: set[str] = set()  # the fields that it writes
        self.judge = ""  # the call of what judges it
        self.functions: Tries = Tries(self.loads, self.called)

    def source(self) -> str:
        """The whole file."""
        spec, taken = self.spec, ""
        alone = [(holds, names, (self.state,)) for holds, names in self.alone]
        right = FUNCTION.format(name="is_right", given="", body=self._loaded(self._asked(alone)))
        inside = FUNCTION.format(name="is_within", given="", body=self._loaded(self._truth(self.within, self.state)))
        instead = {
            f"instead_{number}": self._step(spec.deviations[number].step, action, number + 1)
            for action, numbers in self.instead.items()
            for number in numbers
        }
        roots: dict[str, Subtree] = {}
        for code, (name, action) in enumerate(spec.actions.items()):
            root, last = self._step(action, name, 0), f"a_{(spec.parameters[name] or ('',))[-1]}"
            roots[f"try_{code}"] = self.functions.guarded(f"try_{code}", root, last)
            taken += TAKEN.format(code=code, called=CALLED.removeprefix("e, "))
        head = HEAD.replace(LOOKED_BELOW, "").format(spec=spec.name, limit=LIMIT)
        head = head.replace("from gapless", "import numpy as np\n\nfrom gapless", 1)
        self.functions.source(instead)
        for name, numbers in self.instead.items():
            tried = " or ".join(f"instead_{number}({CALLED})" for number in numbers)
            self.functions.written.append(STAND_IN.format(name=f"stand_in_{name}", called=CALLED, tried=tried))
        steps = self.functions.source(roots)
        loop = LOOP.format(scalars=len(spec.scalars), maps=len(spec.maps), taken=taken)
        below = right + inside + "".join(self.judges) + steps
        quantifiers = self.quantifiers.source()
        if len(below) < SMALL:
            quantifiers = quantifiers.replace("@njit", INLINE)
        return head + WORDS + quantifiers + below + loop

    # -- steps

    def _step(self, function: Callable[..., Any], action: str, way: int) -> Subtree:
        tree = self.tree(function, action)
        made = [leaf.outcome for leaf in leaves(tree) if not isinstance(leaf.outcome, Refused)]
        self.way = way
        self.written = {
            name for name in self.spec.scalars if any(text_of(getattr(s, name)) != f"s_{name}" for s in made)
        } | {name for name in self.spec.maps if any(getattr(s, name) is not getattr(self.state, name) for s in made)}
        self.judge = self._kept(inline=len(made) <= FEW)
        return self.grown(tree, action, function.__name__)

    def refusal(self, action: str, step: str, leaf: Any) -> str:
        """The lines of a refusal: it is counted, and a deviation may stand in."""
        then = f"stand_in_{action}({CALLED})" if self.instead.get(action) and not self.way else "False"
        return f"    refused[{self.reason(action, step, leaf)}] += 1\n    return {then}\n"

    def effect(self, leaf: Any) -> str:
        """The lines of what a step makes: every new value is computed before any is stored, for some read others."""
        made, stored, after = "", "", {}
        count = 0

        def keep(value: Any) -> str:
            nonlocal made, count
            text = text_of(value)
            if not isinstance(value, Code) or NAME.fullmatch(text):
                return text
            made += f"    t{count} = {text}\n"
            count += 1
            return f"t{count - 1}"

        for row, name in enumerate(self.spec.scalars):
            text = text_of(getattr(leaf.outcome, name))
            after[f"s_{row}"] = f"s_{name}" if text == f"s_{name}" else keep(getattr(leaf.outcome, name))
            if text != f"s_{name}":
                stored += f"    store(after, j, layout, {row}, s_{name}, {after[f's_{row}']}, escape)\n"
        for row, name in enumerate(self.spec.maps, len(self.spec.scalars)):
            window = getattr(leaf.outcome, name)
            if window.empty:
                stored += f"    forget_in(after, j, layout, {row}, 0, width, blank)\n"
            for effect in window.effects:
                if isinstance(effect, Put):
                    put = f"{keep(effect.key)} - origin, width, {window.default}, {keep(effect.value)}, escape"
                    stored += f"    put_in(after, j, layout, {row}, {put})\n"
                else:
                    stored += f"    forget_in(after, j, layout, {row}, {keep(effect.low)} - origin, width, blank)\n"
        begin = f"    j = opened(row, after, codes, fill, e * {self.ways} + {self.way})\n"
        judged = self.judge and f"    if not {self.judge.format_map(after)}:\n        codes[j] = -1 - codes[j]\n"
        return f"{made}{begin}{stored}{judged}    return True\n"

    def _kept(self, *, inline: bool) -> str:
        """A call of what says whether step properties hold, with places for what the step writes; none if they must."""
        spec, shown = self.spec, set[str]()
        after: dict[str, Any] = {name: getattr(self.state, name) for name in (*spec.scalars, *spec.maps)}
        for row, name in enumerate(spec.scalars):
            if name in self.written:
                after[name] = Code(f"s_{row}")
        for column, name in enumerate(spec.maps):
            if name in self.written:
                after[name] = After(len(spec.maps) + column, name, getattr(self.state, name).default, shown)
        states = self.state, type(spec.initial)(**after)
        body = self._asked([(holds, names, states) for holds, names in self.pairs])
        if not body:
            return ""
        places = enumerate(spec.maps, len(spec.maps))
        lines = "".join(
            f"    shown(after, j, layout, {len(spec.scalars) - len(spec.maps) + place}, windows, {place}, width)\n"
            for place, name in places
            if name in shown
        )
        given = [name for name in names_in(body) if name[2:].isdigit()]
        name = f"kept_{len(self.judges)}"
        text = KEPT.format(name=name, given="".join(f"{one}, " for one in given), shown=lines, body=self._loaded(body))
        self.judges.append(text.replace("@njit", INLINE) if inline else text)
        values = "".join(f"{{{one}}}, " for one in given)
        return f"{name}({values}j, after, layout, {SEEN}, numbers, lows)"

    # -- properties

    def _asked(self, properties: Sequence[tuple[Any, Sequence[str], tuple[Any, ...]]]) -> str:
        """The lines that return False where one of them does not hold: in one loop, those that speak of one kind."""
        bodies: dict[tuple[str, ...], str] = {}
        for holds, names, states in properties:
            lines = self._truth(holds, *states, *(Code(f"a_{name}") for name in names))
            bodies[tuple(names)] = bodies.get(tuple(names), "") + lines
        asked = ""
        for names, body in bodies.items():
            if names and body:
                number = self.spoken_of.setdefault(names, len(self.spoken_of))
                given = "".join(f"    a_{name} = numbers[e, {column}]\n" for column, name in enumerate(names))
                asked += EACH.format(number=number, body=deeper(given + body))
            else:
                asked += body
        return asked

    def _truth(self, holds: Callable[..., bool], *given: Any) -> str:
        """The lines that return False where it does not hold."""
        token = reader.set(self.quantifiers)
        try:
            tree = tree_of(holds, *given)
        finally:
            reader.reset(token)
        return "" if all(leaf.outcome is True for leaf in leaves(tree)) else truth(tree, "    ")

    def _loaded(self, body: str) -> str:
        """The lines, behind those that load what they look at of the state."""
        names = [name for name in names_in(body) if name in self.places and name.startswith("s_")]
        return "".join(f"    {name} = {self.places[name]}\n" for name in names) + body


class After(Window):
    """A Map as a step left it. `looked_at`: the names of those that somebody asks."""

    def __init__(self, column: int, field: str, default: int, looked_at: set[str], **effects: Any) -> None:
        super().__init__(column, field, default, **effects)
        self.looked_at = looked_at

    def there(self, key: Any) -> Any:
        """What lies at `key` after the step."""
        self.looked_at.add(self.field)
        return super().there(key)

    def like(self, *, empty: bool, effects: Any) -> Window:
        """The same Map with other effects."""
        return After(self.column, self.field, self.default, self.looked_at, empty=empty, effects=effects)


class Tries(Functions):
    """Functions that try a step with all its arguments, run by run: in a run, the last one grows by one each time.

    A need that comes first and does not look at the arguments is asked once, for all of them; one that compares the
    last with something else says where in a run to begin or to end.
    """

    def __init__(self, loads: Callable[[str], str], called: str) -> None:
        super().__init__(loads, called)
        self.before: dict[str, tuple[str, str]] = {}  # what is asked of all runs, and of each

    def guarded(self, name: str, part: Subtree, last: str) -> Subtree:
        """What is left of a step's tree to be asked of every call."""
        guards = narrowed = ""
        while part.yes is not None and part.no is not None:
            refused, kept = (part.yes, part.no) if COUNTED.fullmatch(part.yes.text) else (part.no, part.yes)
            reason = COUNTED.fullmatch(refused.text)
            if not reason:
                break
            arguments = [one for one in names_in(part.text) if one.startswith("a_")]
            outcome = f"{'not ' if refused is part.no else ''}{part.text}"
            counter = f"refused[{reason[1]}]"
            if not arguments and not narrowed:
                guards += f"    if {outcome}:\n        {counter} += runs[end - 1, 1] - runs[one, 0]\n        return\n"
            elif last not in arguments:
                narrowed += f"if {outcome}:\n    {counter} += last - first\n    continue\n"
            elif lines := _range(part.text, last, counter, wanted=refused is part.no):
                narrowed += lines
            else:
                break
            part = kept
        self.before[name] = guards, narrowed
        return part

    def write(self, name: str, body: str) -> None:
        """One more function: of calls, where it is what remains of a step."""
        if name not in self.before:
            super().write(name, body)
            return
        guards, narrowed = self.before[name]
        own = [one for one in names_in(guards + narrowed + body) if one.startswith("s_")]
        loads = self.loads(" ".join(own))
        given = [one for one in names_in(narrowed) if one.startswith("a_")]
        if narrowed:
            loaded = deeper(self.loads(" ".join(given)))
            narrowed = deeper(deeper("e = first\n")) + loaded + deeper(deeper("low = first - runs[r, 2]\n" + narrowed))
        lines = self.loads(" ".join(one for one in names_in(body) if one.startswith("a_"))) + body
        lines = ENDS.sub(
            lambda end: (f"{end[1]}{end[2].strip()}\n" if "(" in end[2] else "") + f"{end[1]}continue", lines
        )
        text = TRY.format(
            name=name, called=self.called.removeprefix("e, "), loads=loads, guards=guards, narrowed=narrowed,
            body=deeper(deeper(lines)),
        )  # fmt: skip
        self.written.append(text)


def _range(question: str, last: str, counter: str, *, wanted: bool) -> str:
    """The lines that leave out of a run what a comparison of the last argument refuses; none if it is none."""
    left, right = (re.fullmatch(pattern, question) for pattern in (
        rf"\({last} (<=|<|==|>=|>) (.+)\)", rf"\((.+) (<=|<|==|>=|>) {last}\)",
    ))  # fmt: skip
    if left:
        sign, bound = left[1], left[2]
    elif right:
        sign, bound = TURNED[right[2]], right[1]
    else:
        return ""
    if last in names_in(bound) or not (wanted or sign in NEGATED):
        return ""
    sign = sign if wanted else NEGATED[sign]
    return RANGES[sign].format(at=f"low + {bound}", counter=counter)


def leaves(tree: Any) -> Iterator[Any]:
    """The outcomes of a tree."""
    if isinstance(tree, forking.Leaf):
        yield tree
    else:
        yield from leaves(tree.yes)
        yield from leaves(tree.no)
