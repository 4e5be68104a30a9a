"""Small specs of the shapes that compiled readings have got wrong, drawn at random as text.

Maps that are stored into other fields, swapped, chosen by a condition or of another default; products, long sums,
divisions and signs; constants near the ends of 64 bits; quantifiers within quantifiers. They mean nothing. All are
within the vocabulary, so what fails can be read and kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

DEPTH = 3  # of expressions within expressions
LONG_SUM = 9
SMALL = ("0", "1", "2", "3", "5", "7")
LARGE = (
    "1000", "1000000", "1000000000", "2147483647", "2147483648", "4294967296", "1000000000000", "1152921504606846975",
    "576460752303423488", "TOP", "BOTTOM", "HALF",
)  # fmt: skip
DIVISORS = ("1", "2", "3", "7", "1000", "1000000007", "1152921504606846975", "TOP", "HALF")
COMPARED = ("==", "!=", "<", "<=", ">", ">=")
TIMES = ("+", "+", "-", "-", "*")

HEAD = '''"""A spec that means nothing."""

from dataclasses import dataclass

from gapless.spec.language import (
    Map, Number, all_between, applies, count_between, greatest, implies, replace, require, some_between,
)

TOP = 2 ** 63 - 1
BOTTOM = -2 ** 63
HALF = 2 ** 62


@dataclass(frozen=True, slots=True)
class State:
    """Nothing."""

{fields}

'''

TAIL = '''
def fine(s: State) -> bool:
    """Otherwise it is odd."""
    return s.a == s.a


INITIAL = State()
INITIALS = ({starts})
ACTIONS = ({actions},)
INVARIANTS = (fine,)
'''


@dataclass
class Drawn:
    """One spec that is being drawn, and the names that its expressions may use."""

    random: Random
    scalars: Sequence[str] = ("a", "b")
    flags: Sequence[str] = ("s.f",)
    maps: dict[str, int] = field(default_factory=dict)  # with their defaults
    counts: bool = False
    has_pairs: bool = False  # a Map of two keys, `q`
    arguments: Sequence[str] = ()
    keys: Sequence[str] = ()

    def one(self, choices: Sequence[str]) -> str:
        """One of several, each as likely."""
        return choices[int(self.random.random() * len(choices))]

    def upto(self, most: int) -> int:
        """A number from 0."""
        return int(self.random.random() * (most + 1))

    # -- numbers

    def number(self, depth: int = DEPTH) -> str:  # noqa: C901, PLR0911 - one for each kind
        """An expression that is a number."""
        match self.upto(14 if depth else 5):
            case 0 | 1:
                return f"s.{self.one(self.scalars)}"
            case 2 | 3 if self.arguments:
                return self.one(self.arguments)
            case 4 if self.has_pairs and self.upto(1):
                return f"s.q[{self.key(min(depth, 1))}, {self.key(0)}]"
            case 4 if self.maps:
                return f"s.{self.one(tuple(self.maps))}[{self.key(min(depth, 1))}]"
            case 5 if self.upto(2) == 0:
                return self.one(LARGE)
            case 6 | 7 | 8:
                return f"({self.number(depth - 1)} {self.one(TIMES)} {self.number(depth - 1)})"
            case 9:
                return f"({self.number(depth - 1)} {self.one(('//', '%'))} {self.one(DIVISORS)})"
            case 10:
                return f"(-{self.number(depth - 1)})"
            case 11:
                return f"({self.number(depth - 1)} if {self.truth(depth - 1)} else {self.number(depth - 1)})"
            case 12:
                return f"greatest({self.number(depth - 1)}, {self.number(depth - 1)})"
            case 13 if self.upto(3) == 0:
                return f"({' + '.join(self.number(0) for _ in range(LONG_SUM))})"
            case 14 if self.counts and self.upto(3) == 0:
                return self.quantified(depth - 1, ("count_between",))
        return self.one(SMALL)

    def key(self, depth: int) -> str:
        """An expression that is a key."""
        if self.keys and self.upto(1):
            return self.one(self.keys)
        return f"Number({self.number(depth) if self.upto(1) else self.one(SMALL)})"

    def truth(self, depth: int = DEPTH) -> str:  # noqa: PLR0911 - one for each kind
        """An expression that is true or not."""
        match self.upto(9 if depth else 3):
            case 0 | 9:
                return self.far()
            case 3:
                return self.one(self.flags)
            case 4:
                return self.quantified(depth - 1)
            case 5:
                return f"({self.truth(depth - 1)} {self.one(('and', 'or'))} {self.truth(depth - 1)})"
            case 6:
                return f"(not {self.truth(depth - 1)})"
            case 7:
                return f"implies({self.truth(depth - 1)}, {self.truth(depth - 1)})"
        return f"({self.number(min(depth, 2))} {self.one(COMPARED)} {self.number(min(depth, 1))})"

    def far(self) -> str:
        """A product or a sum of what goes in, compared with a number: near the ends of 64 bits, it leaves them."""
        some = (*self.arguments, *(f"s.{name}" for name in self.scalars))
        shape = self.upto(4)
        if shape == 0:
            value = " + ".join(self.one(some) for _ in range(LONG_SUM))
        elif shape == 1:
            value = f"{self.one(some)} * {self.one(LARGE)}"
        else:
            value = " * ".join(self.one(some) for _ in range(2 + (shape == 2)))
        return f"({value} {self.one(COMPARED)} {self.one((*SMALL, *LARGE))})"

    def quantified(self, depth: int, words: Sequence[str] = ("all_between", "some_between")) -> str:
        """A quantifier over a few numbers; those within may speak of its own."""
        ends = ("-1", "0", "1", f"({self.number(0)} % 4)", *(key for key in self.keys if key[0] == "n"))
        low, high = self.one(ends), self.one((*ends, "3", f"({self.number(0)} % 6)"))
        name, keys, arguments = f"n{sum(key[0] == 'n' for key in self.keys)}", self.keys, self.arguments
        self.keys, self.arguments = (*keys, name), (*arguments, name)
        body = self.truth(depth)
        self.keys, self.arguments = keys, arguments
        return f"{self.one(words)}({low}, {high}, lambda {name}: {body})"

    # -- Maps

    def map(self, own: str) -> str:
        """A new value of a field that is a Map: mostly its own, written to; sometimes another's."""
        one = own if self.upto(11) else self.one(tuple(self.maps))
        base = f"s.{one}"
        if self.upto(14) == 0:
            base = f"({base} if {self.truth(1)} else s.{self.one(tuple(self.maps))})"
        for _ in range(self.upto(2)):
            match self.upto(4):
                case 0:
                    base = f"{base}.forget_from({self.key(1)})"
                case 1:
                    base = f"{base}.cleared()"
                case _:
                    base = f"{base}.set({self.key(1)}, {self.number(2)})"
        return base

    def pairs(self) -> str:
        """A new value of the Map of two keys."""
        base = "s.q.cleared()" if self.upto(7) == 0 else "s.q"
        for _ in range(self.upto(2)):
            base = f"{base}.set({self.key(1)}, {self.key(1)}, {self.number(2)})"
        return base

    # -- steps

    def effect(self) -> str:
        """The state after a step."""
        fields = [*self.scalars, "f", *self.maps, *self.maps, *["q", "q"] * self.has_pairs]
        chosen = dict.fromkeys(self.one(fields) for _ in range(1 + self.upto(2)))
        if len(self.maps) > 1 and self.upto(30) == 0:
            one, other = list(self.maps)[:2]
            return f"replace(s, {one}=s.{other}, {other}=s.{one})"
        changes = {
            name: self.map(name) if name in self.maps else self.truth(2) if name == "f" else self.number()
            for name in chosen
            if name != "q"
        }
        if "q" in chosen:
            changes["q"] = self.pairs()
        return f"replace(s, {', '.join(f'{name}={value}' for name, value in changes.items())})"

    def step(self, which: int) -> str:
        """An action: needs, perhaps a case, an effect."""
        kinds = [self.one(("int", "int", "Number", "bool")) for _ in range(self.upto(3))]
        named = [(f"x{n}", kind) for n, kind in enumerate(kinds)]
        self.arguments = tuple(name for name, kind in named if kind != "bool")
        self.flags = ("s.f", *(name for name, kind in named if kind == "bool"))
        self.keys = tuple(name for name, kind in named if kind == "Number")
        given = "".join(f", {name}: {kind}" for name, kind in named)
        lines = [f"def step_{which}(s: State{given}) -> State:", '    """Do it."""']
        for need in range(self.upto(2)):
            says = f'"need-{which}-{need}", because="it is needed", otherwise="it is odd"'
            lines.append(f"    require({self.truth()}, {says})")
        if self.upto(3) == 0:
            lines += [f"    if {self.truth(2)}:", f"        return {self.effect()}"]
        lines.append(f"    return {self.effect()}")
        return "\n".join(lines) + "\n"

    def start(self) -> str:
        """A function that makes initial states, of small numbers and a Map."""
        self.arguments, self.flags, self.keys = ("y0", "y1"), ("s.f",), ()
        changes = f"a=y0, b={self.number(1)}" + ", m=z.set(Number(y1), y0)" * ("m" in self.maps)
        lines = ["def begin(s: State, y0: int, y1: int, z: Map[Number, int]) -> State:", '    """Do it."""']
        lines += [f"    applies({self.truth(1)} or y0 == 0)", f"    return replace(s, {changes})"]
        return "\n".join(lines) + "\n"


def spec(number: int) -> str:
    """The spec of this number, the same every time, as text."""
    random = Random(number)  # noqa: S311 - nothing is kept secret by it
    drawn = Drawn(random)
    defaults = [0, 0 if drawn.upto(3) else 7]
    drawn.maps = dict(zip(("m", "p"), defaults, strict=True)) if drawn.upto(5) else {}
    fields = ["    a: int = 0", f"    b: int = {drawn.one(SMALL)}", "    f: bool = False"]
    fields += [f"    {name}: Map[Number, int] = Map({default})" for name, default in drawn.maps.items()]
    drawn.has_pairs, drawn.counts = drawn.upto(3) == 0, drawn.upto(2) == 0
    fields += [f"    q: Map[Number, Number, int] = Map({drawn.one(('0', '7'))})"] * drawn.has_pairs
    steps = [drawn.step(which) for which in range(1 + drawn.upto(2))]
    actions = ", ".join(f"step_{which}" for which in range(len(steps)))
    starts = [drawn.start()] if drawn.upto(3) == 0 else []
    return (
        "\n\n".join([HEAD.format(fields="\n".join(fields)).rstrip() + "\n", *steps, *starts])
        + "\n"
        + TAIL.format(actions=actions, starts="begin," * len(starts))
    )
