"""Programs of the language, made at random as syntax trees.

Each expression is made with the bounds within which its value lies. Where they leave 64 bits, the value is cast, which
takes it modulo 2⁶⁴ in each reading.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

import numpy as np

from gapless.native.kinds import BOOL, I64, U64, Int
from gapless.native.language import Cast, Function, SyntaxFunction, int64, uint64

LEAST, MOST = -(1 << 63), (1 << 63) - 1
EDGES = (0, 1, 2, 3, 7, 8, 63, 64, 127, 128, 255, 256, 65_535, 1 << 31, 1 << 32, (1 << 62) - 1, 1 << 62, MOST)
SORTS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.bool_)
TABLE = np.array([5, -3, MOST, LEAST, 0, 1, -1, 40], np.int64)
CASTS = {f"cast_{cast.__name__}": cast for cast in (Cast(b, signed=s) for b in (8, 16, 32, 64) for s in (True, False))}
COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
FUNCTIONS = {"min", "max", "int64", "uint64"}
DEEP = 2  # parts of parts of an expression
FEW = 12  # rounds of a loop


class Triple(NamedTuple):
    """Arguments that are handed over together."""

    array: Any
    number: int
    flag: bool


@dataclass(frozen=True)
class Made:
    """An expression: its tree, its kind and the bounds within which its value lies."""

    node: ast.expr
    kind: Int
    low: int
    high: int

    @property
    def is_known(self) -> bool:
        """True if the compiler may know its value: it names no variable, element or answer."""
        names = {one.id for one in ast.walk(self.node) if isinstance(one, ast.Name)}
        return all(one in FUNCTIONS or one.startswith("cast_") for one in names)

    @property
    def is_wide(self) -> bool:
        """True if Python's number may have more than 64 bits."""
        return self.low < LEAST or self.high > MOST


@dataclass(frozen=True)
class ArrayRoom:
    """An array that a program sees: the expression for it, and what it is like. Its length is at least `least`."""

    node: ast.expr
    dtype: Any
    shape: tuple[int, ...]
    is_constant: bool = False
    is_view: bool = False


@dataclass
class DrawnProgram:
    """A function, and the arguments that it is called with: new ones each time, for it writes into them."""

    function: Function
    called: list[SyntaxFunction]
    arguments: Callable[[], tuple[Any, ...]]
    is_risky: bool

    @property
    def text(self) -> str:
        """All functions, as Python writes them, and the arguments."""
        return "\n\n".join([*(ast.unparse(one.node) for one in self.called), repr(self.arguments())])


def program(choose: Random, *, is_risky: bool) -> DrawnProgram:
    """A program of up to four functions, of which the last one is called from Python."""
    called: list[SyntaxFunction] = []
    for at in range(choose.choice((0, 1, 1, 2))):
        called.append(helper(choose, at, called, is_risky=is_risky))
    arrays = [array(choose) for _ in range(choose.randrange(1, 4))]
    rooms = [ArrayRoom(name(f"array{at}"), one.dtype, one.shape) for at, one in enumerate(arrays)]
    whole = Body(choose, is_risky=is_risky, called=called, rooms=rooms)
    numbers = [choose.choice((-1, 1)) * choose.choice(EDGES) for _ in range(2)]
    large, flag = choose.choice(EDGES) * choose.randrange(1, 3), choose.random() < 0.5
    whole.numbers = {"one": (I64, LEAST, MOST), "other": (I64, LEAST, MOST), "large": (U64, 0, 2 * MOST + 1)}
    whole.numbers |= {"flag": (BOOL, 0, 1)}
    names = [*(f"array{at}" for at in range(len(arrays))), "one", "other", "large", "flag", "triple"]
    third = array(choose)
    whole.rooms.append(ArrayRoom(ast.Attribute(name("triple"), "array", ast.Load()), third.dtype, third.shape))
    made = whole.function("fuzzed", names, answers=3)
    called.append(made)

    def arguments() -> tuple[Any, ...]:
        copies = [copied(one) for one in arrays]
        return *copies, *numbers, np.uint64(large), flag, Triple(copied(third), numbers[0], flag)

    return DrawnProgram(made, called, arguments, is_risky)


def copied(given: Any) -> Any:
    """A copy with the same strides."""
    if given.flags.c_contiguous:
        return given.copy()
    whole = np.zeros((*given.shape[:-1], 2 * given.shape[-1]), given.dtype)
    whole[..., ::2] = given
    return whole[..., ::2]


def array(choose: Random) -> Any:
    """An array of any element type, of one or two dimensions, some of them strided."""
    kind = np.dtype(choose.choice(SORTS))
    shape = tuple(choose.randrange(1, 7) for _ in range(choose.choice((1, 1, 2))))
    is_strided = choose.random() < 0.3
    whole = (*shape[:-1], 2 * shape[-1]) if is_strided else shape
    values = [choose.choice((choose.choice(EDGES), choose.randrange(1 << 64))) for _ in range(int(np.prod(whole)))]
    made = np.array([one & ((1 << 64) - 1) for one in values], np.uint64)
    made = (made & np.uint64(1) if kind == np.bool_ else made).astype(kind).reshape(whole)
    return made[..., ::2] if is_strided else made


def helper(choose: Random, at: int, called: Sequence[SyntaxFunction], *, is_risky: bool) -> SyntaxFunction:
    """A function of two numbers, with an answer of one."""
    body = Body(choose, is_risky=is_risky, called=list(called), rooms=[])
    body.numbers = {"one": (I64, LEAST, MOST), "other": (I64, LEAST, MOST)}
    return body.function("helper" if choose.random() < 0.5 else f"helper{at}", ["one", "other"], answers=1)


def name(of: str) -> ast.Name:
    """A name that is read."""
    return ast.Name(of, ast.Load())


def number(value: int) -> ast.expr:
    """A number that stands in a text."""
    return ast.Constant(value) if value >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))


def call(of: str, *args: ast.expr) -> ast.expr:
    """A call."""
    return ast.Call(name(of), list(args), [])


@dataclass
class Body:
    """A function that is being made. `numbers`: names that have a value, with kind and bounds."""

    choose: Random
    is_risky: bool
    called: list[SyntaxFunction]
    rooms: list[ArrayRoom]
    numbers: dict[str, tuple[Int, int, int]] = field(default_factory=dict)
    count: int = 0
    loops: int = 0
    depth: int = 0
    fixed: set[str] = field(default_factory=set)

    def function(self, of: str, parameters: Sequence[str], *, answers: int) -> SyntaxFunction:
        """The whole function."""
        self.answers = answers
        self.fixed = {"large"}
        if of == "fuzzed":
            self.rooms.append(ArrayRoom(name("TABLE"), TABLE.dtype, TABLE.shape, is_constant=True))
        body = [*self.statements(self.choose.randrange(2, 7)), self.leave()]
        given = ast.arguments([], [ast.arg(one) for one in parameters], None, [], [], None, [])
        node = ast.FunctionDef(of, given, body, [], None, None)
        node.__dict__["type_params"] = []
        names = {"TABLE": TABLE, "Triple": Triple, "int64": int64, "uint64": uint64, **CASTS}
        names |= {f"call_{at}": one for at, one in enumerate(self.called)}
        return SyntaxFunction(of, ast.fix_missing_locations(node), names)

    def leave(self) -> ast.stmt:
        """A return of so many numbers, each cast: so the answer has one kind."""
        if self.answers == 1:
            return ast.Return(call("int64", self.whole().node))
        return ast.Return(ast.Tuple([self.whole().node, self.unsigned().node, self.truth().node], ast.Load()))

    # -- statements

    def statements(self, count: int) -> list[ast.stmt]:
        """So many statements; a name that is assigned within a part has no value behind it."""
        made: list[ast.stmt] = []
        for _ in range(count):
            made += self.statement()
        return made

    def part(self, count: int) -> list[ast.stmt]:
        """Statements that may not run."""
        numbers, rooms, self.depth = dict(self.numbers), list(self.rooms), self.depth + 1
        made = self.statements(count)
        self.numbers, self.rooms, self.depth = numbers, rooms, self.depth - 1
        return made

    def statement(self) -> list[ast.stmt]:
        """A statement, with those that it needs before it."""
        kinds: list[Callable[[], list[ast.stmt]]] = [self.assignment] * 4 + [self.change] * 2 + [self.unpacking]
        if self.depth < 2 + (self.choose.random() < 0.2):
            kinds += [self.choice] * 3 + [self.counted] * 2 + [self.repeated, self.over_array, self.over_tuple]
        if any(not room.is_constant for room in self.rooms):
            kinds += [self.put] * 3 + [self.fill, self.view]
        if self.loops:
            kinds += [self.jump] * 2
        if self.depth:
            kinds += [self.early]
        return self.choose.choice(kinds)()

    def new(self, kind: Int, low: int, high: int) -> str:
        """A new name, or one that has a value of such a kind already."""
        known = [one for one, how in self.numbers.items() if how == (kind, low, high) and one not in self.fixed]
        if known and self.choose.random() < 0.6:
            return self.choose.choice(known)
        self.count += 1
        return f"{'b' if kind == BOOL else 'u' if kind == U64 else 'v'}{self.count}"

    def assignment(self) -> list[ast.stmt]:
        """A value for a name."""
        made = self.any()
        low, high = {I64: (LEAST, MOST), U64: (0, 2 * MOST + 1), BOOL: (0, 1)}[made.kind]
        target = self.new(made.kind, low, high)
        self.numbers[target] = made.kind, low, high
        return [ast.Assign([ast.Name(target, ast.Store())], made.node)]

    def change(self) -> list[ast.stmt]:
        """A number that is changed in place, modulo 2 to some bits."""
        known = [one for one, how in self.numbers.items() if how == (I64, LEAST, MOST) and one not in self.fixed]
        if not known:
            return self.assignment()
        target, sort = self.choose.choice(known), self.choose.choice((ast.BitXor, ast.BitAnd, ast.BitOr))
        return [ast.AugAssign(ast.Name(target, ast.Store()), sort(), self.whole().node)]

    def unpacking(self) -> list[ast.stmt]:
        """Two names that are given values at once, perhaps each other's."""
        one, other = self.whole(), self.whole()
        names = self.new(I64, LEAST, MOST), self.new(I64, LEAST, MOST)
        for target in names:
            self.numbers[target] = I64, LEAST, MOST
        targets = ast.Tuple([ast.Name(target, ast.Store()) for target in names], ast.Store())
        return [ast.Assign([targets], ast.Tuple([one.node, other.node], ast.Load()))]

    def choice(self) -> list[ast.stmt]:
        """One of two ways, or none."""
        test = self.truth() if self.choose.random() < 0.8 else self.whole()
        one = self.part(self.choose.randrange(1, 4))
        other = self.part(self.choose.randrange(1, 3)) if self.choose.random() < 0.5 else []
        return [ast.If(test.node, one, other)]

    def looped(self, body: list[ast.stmt], bound: Callable[[list[ast.stmt]], ast.stmt]) -> list[ast.stmt]:
        """A loop: of its first statements, and of some more."""
        self.loops += 1
        body += self.part(self.choose.randrange(1, 4))
        self.loops -= 1
        return [bound(body)]

    def counted(self) -> list[ast.stmt]:
        """A loop over a range, whose name keeps its last value where the loop runs at all."""
        self.count += 1
        target, numbers = f"i{self.count}", dict(self.numbers)
        low, high = self.few(), self.few()
        step = self.choose.choice((1, 1, 1, 2, 3, -1, -2))
        ends = [low, high] if step > 0 else [high, low]
        given = [high] if step == 1 and self.choose.random() < 0.4 else [*ends, number(step)] if step != 1 else ends
        is_before = self.choose.random() < 0.4
        before: list[ast.stmt] = [ast.Assign([ast.Name(target, ast.Store())], number(3))] if is_before else []
        self.numbers[target] = I64, -FEW, FEW
        self.fixed.add(target)
        made = self.looped([], lambda body: ast.For(ast.Name(target, ast.Store()), call("range", *given), body, []))
        self.numbers = numbers
        if is_before:
            self.numbers[target] = I64, -FEW, FEW
        return [*before, *made]

    def few(self) -> ast.expr:
        """A small number that is perhaps not known beforehand."""
        if self.choose.random() < 0.5:
            return number(self.choose.randrange(-2, FEW // 2))
        return ast.BinOp(self.whole().node, ast.BitAnd(), ast.Constant(self.choose.choice((1, 3, 7))))

    def repeated(self) -> list[ast.stmt]:
        """A loop with a condition; a counter ends it."""
        self.count += 1
        target = f"n{self.count}"
        counted = ast.Assign([ast.Name(target, ast.Store())], ast.BinOp(name(target), ast.Add(), ast.Constant(1)))
        numbers = dict(self.numbers)
        self.numbers[target] = I64, 0, FEW + 1
        self.fixed.add(target)
        limit = ast.Compare(name(target), [ast.Lt()], [ast.Constant(self.choose.randrange(1, FEW))])
        if self.choose.random() < 0.3:
            leave = ast.If(ast.UnaryOp(ast.Not(), limit), [ast.Break()], [])
            made = self.looped([leave, counted], lambda body: ast.While(ast.Constant(value=True), body, []))
        else:
            test = ast.BoolOp(ast.And(), [limit, self.truth().node]) if self.choose.random() < 0.6 else limit
            made = self.looped([counted], lambda body: ast.While(test, body, []))
        self.numbers = numbers | {target: (I64, 0, FEW + 1)}
        return [ast.Assign([ast.Name(target, ast.Store())], ast.Constant(0)), *made]

    def over_array(self) -> list[ast.stmt]:
        """A loop over the elements of an array."""
        rooms = [one for one in self.rooms if len(one.shape) == 1 and np.dtype(one.dtype).itemsize == 8]
        if not rooms:
            return self.counted()
        room, numbers = self.choose.choice(rooms), dict(self.numbers)
        self.count += 1
        target = f"e{self.count}"
        self.numbers[target] = (U64, 0, 2 * MOST + 1) if room.dtype == np.uint64 else (I64, LEAST, MOST)
        self.fixed.add(target)
        made = self.looped([], lambda body: ast.For(ast.Name(target, ast.Store()), room.node, body, []))
        self.numbers = numbers
        return made

    def over_tuple(self) -> list[ast.stmt]:
        """A loop over the members of a tuple."""
        self.count += 1
        target, numbers = f"m{self.count}", dict(self.numbers)
        of = ast.Tuple([self.whole().node for _ in range(self.choose.randrange(1, 4))], ast.Load())
        self.numbers[target] = I64, LEAST, MOST
        self.fixed.add(target)
        made = self.looped([], lambda body: ast.For(ast.Name(target, ast.Store()), of, body, []))
        self.numbers = numbers | {target: (I64, LEAST, MOST)}
        return made

    def jump(self) -> list[ast.stmt]:
        """Leave a loop, or go on with its next round, on a condition."""
        return [ast.If(self.truth().node, [self.choose.choice((ast.Break, ast.Continue))()], [])]

    def early(self) -> list[ast.stmt]:
        """Return, on a condition."""
        return [ast.If(self.truth().node, [self.leave()], [])] if self.choose.random() < 0.5 else self.assignment()

    # -- arrays

    def put(self) -> list[ast.stmt]:
        """A number that is stored in an element."""
        room = self.choose.choice([one for one in self.rooms if not one.is_constant])
        place = ast.Subscript(room.node, self.indices(room), ast.Store())
        if room.dtype == np.int64 and self.choose.random() < 0.3:
            return [ast.AugAssign(place, self.choose.choice((ast.BitXor, ast.BitAnd))(), self.whole().node)]
        return [ast.Assign([place], self.stored(room))]

    def fill(self) -> list[ast.stmt]:
        """A number that is stored in each element of a part."""
        wide = [one for one in self.rooms if not one.is_constant and self.is_numpy(one)]
        if not wide:
            return self.put()
        room = self.choose.choice(wide)
        part: ast.expr = self.slice(room)
        if len(room.shape) == 2 and self.choose.random() < 0.6:
            part = ast.Tuple(self.choose.choice(([part, ast.Slice()], [part, self.index(room, 1)])), ast.Load())
        return [ast.Assign([ast.Subscript(room.node, part, ast.Store())], self.stored(room))]

    @staticmethod
    def is_numpy(room: ArrayRoom) -> bool:
        """True if Python, too, has it as an array of numpy's: a narrow one of one dimension is a `memoryview`."""
        return len(room.shape) == 2 or room.is_view or np.dtype(room.dtype).itemsize == 8 or room.dtype == np.bool_

    def view(self) -> list[ast.stmt]:
        """A name for a part of an array."""
        rooms = [one for one in self.rooms if self.is_numpy(one)]
        if not rooms:
            return self.put()
        room = self.choose.choice(rooms)
        self.count += 1
        target = f"part{self.count}"
        if len(room.shape) == 2:
            columns = self.choose.random() < 0.5
            at: ast.expr = ast.Tuple([ast.Slice(), self.index(room, 1)], ast.Load()) if columns else self.index(room, 0)
            shape = room.shape[:1] if columns else room.shape[1:]
        else:
            begin = self.choose.randrange(room.shape[0])
            at, shape = ast.Slice(number(begin), None), (room.shape[0] - begin,)
        self.rooms.append(ArrayRoom(name(target), room.dtype, shape, room.is_constant, is_view=True))
        return [ast.Assign([ast.Name(target, ast.Store())], ast.Subscript(room.node, at, ast.Load()))]

    def slice(self, room: ArrayRoom) -> ast.expr:
        """Some elements; the ends may lie beyond the array, and the second before the first."""
        ends = [self.choose.choice((None, self.index(room, 0), number(self.choose.randrange(9)))) for _ in range(2)]
        return ast.Slice(*ends)

    def stored(self, room: ArrayRoom) -> ast.expr:
        """A number that an element has room for: Python refuses others."""
        if room.dtype == np.bool_:
            return self.truth().node
        if room.dtype == np.uint64:
            return self.unsigned().node
        return call(f"cast_{np.dtype(room.dtype).name}", self.whole().node)

    def indices(self, room: ArrayRoom) -> ast.expr:
        """The place of an element."""
        every = [self.index(room, at) for at in range(len(room.shape))]
        return every[0] if len(every) == 1 else ast.Tuple(every, ast.Load())

    def index(self, room: ArrayRoom, at: int) -> ast.expr:
        """An index within bounds; in a risky program, perhaps beyond them."""
        length = room.shape[at]
        if self.is_risky and self.choose.random() < 0.2:
            made = self.whole()
            return made.node if self.choose.random() < 0.3 else ast.BinOp(made.node, ast.BitAnd(), ast.Constant(15))
        if self.choose.random() < 0.4:
            return number(self.choose.randrange(length))
        return ast.BinOp(self.whole().node, ast.Mod(), ast.Constant(length))

    # -- expressions

    def any(self) -> Made:
        """A number or a condition."""
        return self.choose.choice((self.whole, self.whole, self.unsigned, self.truth))()

    def whole(self, deep: int = 0) -> Made:
        """A signed number of 64 bits: cast where it may leave them."""
        made = self.signed(deep)
        if made.is_wide and made.is_known:  # the compiler computes it, and refuses what has more than 64 bits
            return self.variable(deep)
        return Made(call("int64", made.node), I64, LEAST, MOST) if made.is_wide else made

    def signed(self, deep: int) -> Made:
        """A signed number, perhaps of more than 64 bits in Python."""
        kinds: list[Callable[[int], Made]] = [self.constant, self.variable]
        if deep < DEEP:
            kinds += [self.sum, self.sum, self.product, self.divided, self.divided, self.shifted, self.masked]
            kinds += [self.chosen, self.best, self.element, self.element, self.converted, self.negated, self.kept]
            kinds += [self.answered] if self.called else []
        return self.choose.choice(kinds)(deep + 1)

    def constant(self, _: int) -> Made:
        """A number that stands there."""
        value = self.choose.choice(EDGES) + self.choose.randrange(-1, 2)
        value = min(value * self.choose.choice((1, -1)), MOST)
        return Made(number(value), I64, value, value)

    def variable(self, deep: int) -> Made:
        """A name that has a value, or the length of an array."""
        known = [one for one, how in self.numbers.items() if how[0] == I64]
        if self.rooms and self.choose.random() < 0.1:
            room = self.choose.choice(self.rooms)
            return Made(call("len", room.node), I64, 0, 8)
        if not known:
            return self.constant(deep)
        target = self.choose.choice(known)
        return Made(name(target), *self.numbers[target])

    def sum(self, deep: int) -> Made:
        """A sum or a difference."""
        one, other = self.whole(deep), self.whole(deep)
        if self.choose.random() < 0.15:
            self.count += 1
            one = Made(ast.NamedExpr(ast.Name(f"w{self.count}", ast.Store()), one.node), I64, one.low, one.high)
            other = Made(name(f"w{self.count}"), I64, one.low, one.high)
        if self.choose.random() < 0.5:
            return Made(ast.BinOp(one.node, ast.Add(), other.node), I64, one.low + other.low, one.high + other.high)
        return Made(ast.BinOp(one.node, ast.Sub(), other.node), I64, one.low - other.high, one.high - other.low)

    def product(self, deep: int) -> Made:
        """A product."""
        one, other = self.whole(deep), self.whole(deep)
        ends = [a * b for a in (one.low, one.high) for b in (other.low, other.high)]
        return Made(ast.BinOp(one.node, ast.Mult(), other.node), I64, min(ends), max(ends))

    def divided(self, deep: int) -> Made:
        """A quotient rounded down, or what is left; the divisor is not 0, and sometimes -1."""
        one, sort = self.whole(deep), self.choose.choice((ast.FloorDiv, ast.Mod))
        if self.choose.random() < 0.5:
            by = self.choose.choice((1, 2, 3, 5, 7, 8, 64, 1 << 40, MOST, -1, -1, -2, -3, -8, LEAST))
            node = number(by)
        else:
            drawn = ast.BinOp(self.whole(deep).node, ast.BitOr(), ast.Constant(1))
            node = ast.BinOp(drawn, ast.BitOr(), ast.Constant(-4)) if self.choose.random() < 0.3 else drawn
        low, high = (LEAST, MOST + 1) if sort is ast.FloorDiv else (LEAST, MOST)
        return Made(ast.BinOp(one.node, sort(), node), I64, low, high)

    def shifted(self, deep: int) -> Made:
        """A number shifted by 0 to 63 bits."""
        one = self.whole(deep)
        if self.choose.random() < 0.5:
            by: ast.expr = number(self.choose.choice((0, 1, 7, 31, 32, 62, 63)))
        else:
            by = ast.BinOp(self.whole(deep).node, ast.BitAnd(), ast.Constant(63))
        if self.choose.random() < 0.5:
            return Made(ast.BinOp(one.node, ast.LShift(), by), I64, one.low << 63, one.high << 63 | 1 << 63)
        return Made(ast.BinOp(one.node, ast.RShift(), by), I64, LEAST, MOST)

    def masked(self, deep: int) -> Made:
        """Bits of two numbers."""
        sort = self.choose.choice((ast.BitAnd, ast.BitOr, ast.BitXor))
        return Made(ast.BinOp(self.whole(deep).node, sort(), self.whole(deep).node), I64, LEAST, MOST)

    def chosen(self, deep: int) -> Made:
        """One of two numbers."""
        one, other = self.whole(deep), self.whole(deep)
        test = self.truth(deep)
        return Made(ast.IfExp(test.node, one.node, other.node), I64, min(one.low, other.low), max(one.high, other.high))

    def best(self, deep: int) -> Made:
        """The least or the greatest number."""
        given = [self.whole(deep) for _ in range(self.choose.choice((2, 2, 3)))]
        low, high = min(one.low for one in given), max(one.high for one in given)
        return Made(call(self.choose.choice(("min", "max")), *(one.node for one in given)), I64, low, high)

    def element(self, deep: int) -> Made:
        """An element, as a number of 64 bits in each reading."""
        rooms = [one for one in self.rooms if one.dtype != np.uint64]
        if not rooms:
            return self.variable(deep)
        room = self.choose.choice(rooms)
        info = np.iinfo(room.dtype) if room.dtype != np.bool_ else np.iinfo(np.int8)
        place = ast.Subscript(room.node, self.indices(room), ast.Load())
        return Made(call("int64", place), I64, int(info.min), int(info.max))

    def converted(self, deep: int) -> Made:
        """A number cast to some bits, or a condition as 0 or 1."""
        if self.choose.random() < 0.3:
            return Made(call("int64", self.truth(deep).node), I64, 0, 1)
        if self.choose.random() < 0.3:
            return Made(call("int64", self.unsigned(deep).node), I64, LEAST, MOST)
        bits = self.choose.choice((8, 16, 32))
        if self.choose.random() < 0.5:
            return Made(call(f"cast_uint{bits}", self.whole(deep).node), I64, 0, (1 << bits) - 1)
        return Made(call(f"cast_int{bits}", self.whole(deep).node), I64, -(1 << bits - 1), (1 << bits - 1) - 1)

    def negated(self, deep: int) -> Made:
        """A number negated, or all its bits."""
        one = self.whole(deep)
        if self.choose.random() < 0.5:
            return Made(ast.UnaryOp(ast.USub(), one.node), I64, -one.high, -one.low)
        return Made(ast.UnaryOp(ast.Invert(), one.node), I64, -one.high - 1, -one.low - 1)

    def kept(self, deep: int) -> Made:
        """A member of a tuple, known by its number or not."""
        if self.rooms and self.choose.random() < 0.3:
            one = self.whole(deep)
            made = call("Triple", self.choose.choice(self.rooms).node, one.node, self.truth(deep).node)
            return Made(ast.Attribute(made, "number", ast.Load()), I64, one.low, one.high)
        given = [self.whole(deep) for _ in range(self.choose.randrange(1, 4))]
        at = self.choose.randrange(len(given))
        index: ast.expr = number(at)
        if self.choose.random() < 0.5:
            index = ast.BinOp(self.whole(deep).node, ast.Mod(), ast.Constant(len(given)))
        node = ast.Subscript(ast.Tuple([one.node for one in given], ast.Load()), index, ast.Load())
        return Made(node, I64, min(one.low for one in given), max(one.high for one in given))

    def answered(self, deep: int) -> Made:
        """The answer of another function."""
        of = f"call_{self.choose.randrange(len(self.called))}"
        if self.loops > 1:  # so that the work stays small
            return self.variable(deep)
        given = [self.whole(deep).node, self.whole(deep).node]
        if self.choose.random() < 0.3:
            named = [ast.keyword("other", given[0]), ast.keyword("one", given[1])]
            return Made(ast.Call(name(of), [], named), I64, LEAST, MOST)
        return Made(call(of, *given), I64, LEAST, MOST)

    def unsigned(self, deep: int = 0) -> Made:
        """An unsigned number."""
        known = [one for one, how in self.numbers.items() if how[0] == U64]
        rooms = [one for one in self.rooms if one.dtype == np.uint64]
        kind = self.choose.randrange(9) if deep < DEEP else self.choose.randrange(3)
        one: ast.expr
        if kind < 2 and known:
            one = name(self.choose.choice(known))
        elif kind == 2 and rooms and deep < DEEP:
            room = self.choose.choice(rooms)
            one = ast.Subscript(room.node, self.indices(room), ast.Load())
        elif kind < 4 or deep >= DEEP:
            one = call("uint64", self.whole(deep + 1).node)
        elif kind == 4:
            sort: type[ast.operator] = self.choose.choice((ast.LShift, ast.RShift))
            one = ast.BinOp(self.unsigned(deep + 1).node, sort(), number(self.choose.randrange(64)))
        elif kind == 5:
            one = ast.UnaryOp(ast.Invert(), self.unsigned(deep + 1).node)
        elif kind == 6:
            sort = self.choose.choice((ast.FloorDiv, ast.Mod))
            by = ast.BinOp(self.unsigned(deep + 1).node, ast.BitOr(), ast.Constant(1))
            one = ast.BinOp(self.unsigned(deep + 1).node, sort(), by)
        elif kind == 7:
            one = ast.IfExp(self.truth(deep + 1).node, self.unsigned(deep + 1).node, self.unsigned(deep + 1).node)
        else:
            sort = self.choose.choice((ast.Add, ast.Sub, ast.Mult, ast.BitAnd, ast.BitOr, ast.BitXor))
            one = ast.BinOp(self.unsigned(deep + 1).node, sort(), self.unsigned(deep + 1).node)
        return Made(one, U64, 0, 2 * MOST + 1)

    def truth(self, deep: int = 0) -> Made:
        """A condition."""
        known = [one for one, how in self.numbers.items() if how[0] == BOOL]
        kind = self.choose.randrange(8) if deep < DEEP else self.choose.randrange(3)
        one: ast.expr
        if kind == 0 and known:
            one = name(self.choose.choice(known))
        elif kind == 3:
            one = ast.UnaryOp(ast.Not(), self.truth(deep + 1).node)
        elif kind in {4, 5}:
            parts = [self.truth(deep + 1).node for _ in range(self.choose.choice((2, 2, 3)))]
            one = ast.BoolOp(self.choose.choice((ast.And, ast.Or))(), parts)
        elif kind == 6:
            parts = [self.whole(deep + 1).node for _ in range(self.choose.choice((2, 3)))]
            of = ast.Tuple(parts, ast.Load())
            one = ast.Compare(self.whole(deep + 1).node, [self.choose.choice((ast.In, ast.NotIn))()], [of])
        elif kind == 7:
            parts = [self.unsigned(deep + 1).node for _ in range(2)]
            one = ast.Compare(parts[0], [self.choose.choice(COMPARISONS)()], parts[1:])
        else:
            count = self.choose.choice((1, 1, 1, 2, 3))
            parts = [self.whole(deep + 1).node for _ in range(count + 1)]
            one = ast.Compare(parts[0], [self.choose.choice(COMPARISONS)() for _ in range(count)], parts[1:])
        return Made(one, BOOL, 0, 1)
