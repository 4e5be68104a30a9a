"""Machine code of a small language: numbers of 64 bits and arrays of them, written as Python.

The search loop of a spec is written as text (`native_source.py`), translated here to the language of LLVM, and made
machine code by the library that numba has for that. Numba would take half a minute for what takes a second or two this
way: it finds out types, and here there are only numbers, and arrays, which are known by their names. So every number
that the packing of a state tells of is a constant of the text.

In the language all numbers have 64 bits and a sign, and wrap around; `>>` alone takes them for bits. `/` is not there,
and `//` and `%` are those of Python. What is given by a name in `ARRAYS` is the address of numbers of so many bits.
`ref(array, at)` is the address of a part, and `soon(array, at)` has the processor fetch what will be looked at.
`equal_in(array, word)` has a bit for each of the first eight numbers that is this one; of bits, `count_of` says how
many are set, and `first_of` which is the first.
"""

from __future__ import annotations

import ast
import ctypes
import re
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.binding as llvm

from gapless.traces import object_code

ARRAYS = {
    **dict.fromkeys(
        ("row", "new", "old", "args", "numbers", "lows", "runs", "counts", "escape", "after", "fill", "ends", "states",
         "slots", "accepted", "refused", "starts"), 64,
    ),
    **dict.fromkeys(("places", "sources", "met", "ahead", "targets", "calls"), 32),
    "beyond": 8,
}  # fmt: skip
"""The arrays, by name, and of how many bits their numbers are."""

SIGNED = {"Lt": "slt", "LtE": "sle", "Gt": "sgt", "GtE": "sge", "Eq": "eq", "NotEq": "ne"}
PLAIN = {
    "Add": "add",
    "Sub": "sub",
    "Mult": "mul",
    "BitAnd": "and",
    "BitOr": "or",
    "BitXor": "xor",
    "LShift": "shl",
    "RShift": "lshr",
}
WORDS = {"equal_in": 2, "first_of": 1, "count_of": 1}  # that are defined below
DIVIDED = {"FloorDiv": "divided", "Mod": "rest_of"}

HEAD = """
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)

declare i64 @llvm.cttz.i64(i64, i1)

declare i64 @llvm.ctpop.i64(i64)

define internal i64 @count_of(i64 %bits) alwaysinline {
  %is = call i64 @llvm.ctpop.i64(i64 %bits)
  ret i64 %is
}

define internal i64 @first_of(i64 %bits) alwaysinline {
  %is = call i64 @llvm.cttz.i64(i64 %bits, i1 true)
  ret i64 %is
}

define internal i64 @equal_in(ptr %line, i64 %word) alwaysinline {
  %one = insertelement <8 x i64> poison, i64 %word, i64 0
  %all = shufflevector <8 x i64> %one, <8 x i64> poison, <8 x i32> zeroinitializer
  %there = load <8 x i64>, ptr %line, align 8
  %same = icmp eq <8 x i64> %there, %all
  %bits = bitcast <8 x i1> %same to i8
  %is = zext i8 %bits to i64
  ret i64 %is
}

define internal i64 @rest_of(i64 %a, i64 %b) alwaysinline {
  %none = icmp eq i64 %b, 0
  %by = select i1 %none, i64 1, i64 %b
  %rest = srem i64 %a, %by
  %signs = xor i64 %rest, %by
  %other = icmp slt i64 %signs, 0
  %some = icmp ne i64 %rest, 0
  %up = and i1 %other, %some
  %more = add i64 %rest, %by
  %is = select i1 %up, i64 %more, i64 %rest
  ret i64 %is
}

define internal i64 @divided(i64 %a, i64 %b) alwaysinline {
  %none = icmp eq i64 %b, 0
  %by = select i1 %none, i64 1, i64 %b
  %rest = call i64 @rest_of(i64 %a, i64 %by)
  %whole = sub i64 %a, %rest
  %is = sdiv i64 %whole, %by
  ret i64 %is
}
"""


class NotInTheLanguage(Exception):  # noqa: N818 - its message says all.
    """A text says what this language does not know."""


class _LoopFunction:
    """One function as LLVM has it."""

    def __init__(self, node: ast.FunctionDef, known: dict[str, int], constants: dict[str, int]) -> None:
        self.node, self.known, self.constants = node, known, constants
        self.lines: list[str] = []
        self.count = 0
        self.loops: list[tuple[str, str]] = []  # where `continue` and `break` lead
        self.ended = False  # whether the block has ended
        self.given = [one.arg for one in node.args.args]
        stored = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.kept = sorted(stored)
        self.told = set(self.given)  # what has a value by now

    def text(self) -> str:
        """The function."""
        exported = any(isinstance(d, ast.Name) and d.id == "exported" for d in self.node.decorator_list)
        inline = any(isinstance(d, ast.Name) and d.id == "inline" for d in self.node.decorator_list)
        apart = any(isinstance(d, ast.Name) and d.id == "apart" for d in self.node.decorator_list)
        given = ", ".join(f"ptr noalias %{name}" if name in ARRAYS else f"i64 %{name}" for name in self.given)
        for name in self.kept:
            self.lines.append(f"%v.{name} = alloca {'ptr' if name in ARRAYS else 'i64'}")
            if name in self.given:
                self.lines.append(f"store {self._kind(name)} %{name}, ptr %v.{name}")
        self.block(self.node.body)
        if not self.ended:
            self.lines.append("ret i64 0")
        how = " alwaysinline" if inline else " noinline" if apart else ""
        body = "\n".join(line if line.endswith(":") else f"  {line}" for line in self.lines)
        return (
            f"\ndefine {'' if exported else 'internal '}i64 @{self.node.name}({given}){how} nounwind {{\n{body}\n}}\n"
        )

    def _kind(self, name: str) -> str:
        return "ptr" if name in ARRAYS else "i64"

    def new(self, what: str) -> str:
        self.count += 1
        self.lines.append(f"%t.{self.count} = {what}")
        return f"%t.{self.count}"

    def label(self) -> str:
        self.count += 1
        return f"l.{self.count}"

    def begin(self, label: str) -> None:
        if not self.ended:
            self.lines.append(f"br label %{label}")
        self.lines.append(f"{label}:")
        self.ended = False

    def end(self, line: str) -> None:
        if not self.ended:
            self.lines.append(line)
            self.ended = True

    # -- statements

    def block(self, body: Sequence[ast.stmt]) -> None:
        for one in body:
            if not self.ended:
                self.statement(one)

    def statement(self, node: ast.stmt) -> None:
        write = getattr(self, f"on_{type(node).__name__}", None)
        if write is None:
            raise NotInTheLanguage(ast.unparse(node))
        write(node)

    def on_Expr(self, node: ast.Expr) -> None:  # noqa: N802 - as Python calls it.
        if not isinstance(node.value, ast.Constant):
            self.value(node.value)

    def on_Pass(self, _: ast.Pass) -> None:  # noqa: N802
        pass

    def on_Assign(self, node: ast.Assign) -> None:  # noqa: N802
        self.store(node.targets[0], self.typed(node.value))

    def on_AugAssign(self, node: ast.AugAssign) -> None:  # noqa: N802
        place: Any = node.target
        kind = ast.Subscript(place.value, place.slice) if isinstance(place, ast.Subscript) else ast.Name(place.id)
        self.store(place, self.value(ast.BinOp(kind, node.op, node.value)))

    def on_Return(self, node: ast.Return) -> None:  # noqa: N802
        self.end(f"ret i64 {self.value(node.value) if node.value else 0}")

    def on_If(self, node: ast.If) -> None:  # noqa: N802
        yes, no, after = self.label(), self.label(), self.label()
        self.branch(node.test, yes, no)
        for label, body in ((yes, node.body), (no, node.orelse)):
            self.begin(label)
            self.block(body)
            self.end(f"br label %{after}")
        self.begin(after)

    def on_While(self, node: ast.While) -> None:  # noqa: N802
        again, inside, after = self.label(), self.label(), self.label()
        self.begin(again)
        self.branch(node.test, inside, after)
        self.begin(inside)
        self.loops.append((again, after))
        self.block(node.body)
        self.loops.pop()
        self.end(f"br label %{again}")
        self.begin(after)

    def on_For(self, node: ast.For) -> None:  # noqa: N802
        target, bounds = node.target, node.iter
        if not (isinstance(target, ast.Name) and isinstance(bounds, ast.Call) and ast.unparse(bounds.func) == "range"):
            raise NotInTheLanguage(ast.unparse(node))
        low, high = [*(["0"] if len(bounds.args) == 1 else []), *map(self.value, bounds.args)]
        test, inside, step, after = (self.label() for _ in range(4))
        counter = f"%c.{self.count}"
        self.lines.insert(0, f"{counter} = alloca i64")
        self.lines.append(f"store i64 {low}, ptr {counter}")
        self.begin(test)
        at = self.new(f"load i64, ptr {counter}")
        more = self.new(f"icmp slt i64 {at}, {high}")
        self.end(f"br i1 {more}, label %{inside}, label %{after}")
        self.begin(inside)
        self.lines.append(f"store i64 {at}, ptr %v.{target.id}")
        self.told.add(target.id)
        self.loops.append((step, after))
        self.block(node.body)
        self.loops.pop()
        self.begin(step)
        self.lines.append(f"store i64 {self.new(f'add nsw i64 {at}, 1')}, ptr {counter}")
        self.end(f"br label %{test}")
        self.begin(after)

    def on_Continue(self, _: ast.Continue) -> None:  # noqa: N802
        self.end(f"br label %{self.loops[-1][0]}")

    def on_Break(self, _: ast.Break) -> None:  # noqa: N802
        self.end(f"br label %{self.loops[-1][1]}")

    def store(self, place: ast.expr, value: str) -> None:
        if isinstance(place, ast.Name):
            self.lines.append(f"store {self._kind(place.id)} {value}, ptr %v.{place.id}")
            self.told.add(place.id)
        elif isinstance(place, ast.Subscript):
            address, bits = self.address(place)
            made = value if bits == 64 else self.new(f"trunc i64 {value} to i{bits}")
            self.lines.append(f"store i{bits} {made}, ptr {address}")
        else:
            raise NotInTheLanguage(ast.unparse(place))

    # -- values

    def address(self, node: ast.Subscript) -> tuple[str, int]:
        if not isinstance(node.value, ast.Name) or node.value.id not in ARRAYS:
            raise NotInTheLanguage(ast.unparse(node))
        bits = ARRAYS[node.value.id]
        base, at = self.typed(node.value), self.value(node.slice)
        return self.new(f"getelementptr inbounds i{bits}, ptr {base}, i64 {at}"), bits

    def typed(self, node: ast.expr) -> str:
        """A number, or an address."""
        if isinstance(node, ast.Name) and node.id in ARRAYS:
            return self.new(f"load ptr, ptr %v.{node.id}") if node.id in self.kept else f"%{node.id}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ref":
            return self.address(ast.Subscript(node.args[0], node.args[1], ast.Load()))[0]
        return self.value(node)

    def value(self, node: ast.expr) -> str:
        """A number of 64 bits."""
        if isinstance(node, (ast.Compare, ast.BoolOp)) or (
            isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        ):
            return self.new(f"zext i1 {self.truth(node)} to i64")
        write = getattr(self, f"of_{type(node).__name__}", None)
        if write is None:
            raise NotInTheLanguage(ast.unparse(node))
        return str(write(node))

    def of_Constant(self, node: ast.Constant) -> str:  # noqa: N802 - as Python calls it.
        return _signed(int(node.value))  # type: ignore[arg-type]

    def of_Name(self, node: ast.Name) -> str:  # noqa: N802
        if node.id in self.constants:
            return _signed(self.constants[node.id])
        if node.id not in self.told:
            raise NotInTheLanguage(f"{node.id}, which has no value yet")
        return self.new(f"load i64, ptr %v.{node.id}") if node.id in self.kept else f"%{node.id}"

    def of_BinOp(self, node: ast.BinOp) -> str:  # noqa: N802
        one, other, word = self.value(node.left), self.value(node.right), type(node.op).__name__
        if word in DIVIDED:
            return self.new(f"call i64 @{DIVIDED[word]}(i64 {one}, i64 {other})")
        if word not in PLAIN:
            raise NotInTheLanguage(ast.unparse(node))
        return self.new(f"{PLAIN[word]} i64 {one}, {other}")

    def of_UnaryOp(self, node: ast.UnaryOp) -> str:  # noqa: N802
        operand = self.value(node.operand)
        return self.new(f"sub i64 0, {operand}" if isinstance(node.op, ast.USub) else f"xor i64 {operand}, -1")

    def of_Subscript(self, node: ast.Subscript) -> str:  # noqa: N802
        address, bits = self.address(node)
        there = self.new(f"load i{bits}, ptr {address}")
        return there if bits == 64 else self.new(f"{'zext' if bits == 8 else 'sext'} i{bits} {there} to i64")

    def of_IfExp(self, node: ast.IfExp) -> str:  # noqa: N802
        truth, one, other = self.truth(node.test), self.value(node.body), self.value(node.orelse)
        return self.new(f"select i1 {truth}, i64 {one}, i64 {other}")

    def of_Call(self, node: ast.Call) -> str:  # noqa: N802
        name, args = ast.unparse(node.func), node.args
        if name == "soon":
            address = self.address(ast.Subscript(args[0], args[1]))[0]
            self.lines.append(f"call void @llvm.prefetch.p0(ptr {address}, i32 0, i32 3, i32 1)")
            return "0"
        if name in {"min", "max"}:
            one, other = self.value(args[0]), self.value(args[1])
            less = self.new(f"icmp {'slt' if name == 'min' else 'sgt'} i64 {one}, {other}")
            return self.new(f"select i1 {less}, i64 {one}, i64 {other}")
        if self.known.get(name) != len(args):
            raise NotInTheLanguage(ast.unparse(node))
        made = ", ".join(f"{'ptr' if self._is_address(one) else 'i64'} {self.typed(one)}" for one in args)
        return self.new(f"call i64 @{name}({made})")

    @staticmethod
    def _is_address(node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return node.id in ARRAYS
        return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ref"

    def truth(self, node: ast.expr) -> str:
        """One bit. Both sides of `and` and `or` are computed: no call has an effect there, and no value is missing."""
        match node:
            case ast.Compare(left=left, ops=signs, comparators=others):
                values = [self.value(one) for one in (left, *others)]
                bits = [
                    self.new(f"icmp {SIGNED[type(sign).__name__]} i64 {one}, {other}")
                    for sign, one, other in zip(signs, values, values[1:], strict=False)
                ]
                return self.joined("and", bits)
            case ast.BoolOp(op=sign, values=parts):
                return self.joined("and" if isinstance(sign, ast.And) else "or", [self.truth(one) for one in parts])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.new(f"xor i1 {self.truth(operand)}, true")
            case ast.Constant(value=value):
                return "true" if value else "false"
        return self.new(f"icmp ne i64 {self.value(node)}, 0")

    def joined(self, word: str, bits: Sequence[str]) -> str:
        made = bits[0]
        for one in bits[1:]:
            made = self.new(f"{word} i1 {made}, {one}")
        return made

    def branch(self, test: ast.expr, yes: str, no: str) -> None:
        match test:
            case ast.BoolOp(op=sign, values=parts):
                for part in parts[:-1]:
                    between = self.label()
                    self.branch(part, *((between, no) if isinstance(sign, ast.And) else (yes, between)))
                    self.begin(between)
                self.branch(parts[-1], yes, no)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.branch(operand, no, yes)
            case _:
                self.end(f"br i1 {self.truth(test)}, label %{yes}, label %{no}")


def translated(source: str) -> str:
    """A text of the language, as LLVM reads it. Raises NotInTheLanguage."""
    body = ast.parse(source).body
    functions = [node for node in body if isinstance(node, ast.FunctionDef)]
    known = {**WORDS, **{node.name: len(node.args.args) for node in functions}}
    constants: dict[str, int] = {
        node.targets[0].id: ast.literal_eval(node.value)  # type: ignore[attr-defined]
        for node in body
        if isinstance(node, ast.Assign)
    }
    return HEAD + "".join(_LoopFunction(node, known, constants).text() for node in functions)


def _signed(number: int) -> str:
    """A number as the 64 bits of it are written."""
    bits = number & 0xFFFF_FFFF_FFFF_FFFF
    return str(bits - (1 << 64) if bits >> 63 else bits)


# -- machine code --------------------------------------------------------------------------------------------------


def compiled(source: str) -> bytes:
    """Machine code for this processor. Raises NotInTheLanguage."""
    machine = object_code.machine()
    module = llvm.parse_assembly(translated(source))
    module.verify()
    how = llvm.create_pipeline_tuning_options(speed_level=2)
    builder = llvm.create_pass_builder(machine, how)
    passes = builder.getModulePassManager()
    passes.run(module, builder)
    return bytes(machine.emit_object(module))


def of_this_machine(source: str) -> str:
    """What machine code of a text is kept under: it is of no use to another processor, or another version of LLVM."""
    return object_code.digest_of(source, HEAD, *object_code.of_this_machine())


class Loaded:
    """Functions of machine code, by name."""

    def __init__(self, code: bytes, source: str) -> None:
        functions = {
            name: re.findall(r"\w+", given) for name, given in re.findall(r"@exported\ndef (\w+)\(([^)]*)\)", source)
        }
        self._library = object_code.link("loop", code, functions)
        self.functions = {name: self._callable(name, given) for name, given in functions.items()}

    def _callable(self, name: str, given: Sequence[str]) -> Callable[..., int]:
        kinds = [ctypes.c_void_p if one in ARRAYS else ctypes.c_int64 for one in given]
        function: Any = ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(self._library[name])
        function.of = self  # whose memory it lies in
        return function  # type: ignore[no-any-return]
