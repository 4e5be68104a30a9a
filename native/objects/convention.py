"""Our calling convention: Python calls an entry as it calls C extensions, and that reads arrays by their interface.

An entry is a function as `METH_FASTCALL` has it. It reads every argument through Python's C interface, an array through
`__array_struct__` (https://numpy.org/doc/stable/reference/arrays.interface.html#c-struct-access), calls the lowered
function, and makes an object of the answer. Where an argument is of another kind than it was compiled for, it returns
`NotImplemented`. The interpreter lock is let go while the function runs, unless it asks Python about objects.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from gapless.native.compiler.values import returned_type
from gapless.native.kinds import BOOL, NOTHING, OBJECT, U64, Array, Kind, TupleKind, leaves

ENTRY = "entry"
FASTCALL = 0x80  # METH_FASTCALL
C_CONTIGUOUS, ALIGNED, NOT_SWAPPED, WRITEABLE = 0x1, 0x100, 0x200, 0x400  # flags of arrays
DIMENSIONS, SORT, ITEM_SIZE, FLAGS, SHAPE, STRIDES, DATA = 4, 8, 12, 16, 24, 32, 40  # offsets in PyArrayInterface

FUNCTIONS = {
    "PyObject_GetAttr": "ptr @PyObject_GetAttr(ptr, ptr)",
    "PyCapsule_GetPointer": "ptr @PyCapsule_GetPointer(ptr, ptr)",
    "PyNumber_Index": "ptr @PyNumber_Index(ptr)",
    "PyLong_AsLongLong": "i64 @PyLong_AsLongLong(ptr)",
    "PyLong_AsUnsignedLongLong": "i64 @PyLong_AsUnsignedLongLong(ptr)",
    "PyLong_FromLongLong": "ptr @PyLong_FromLongLong(i64)",
    "PyLong_FromUnsignedLongLong": "ptr @PyLong_FromUnsignedLongLong(i64)",
    "PyBool_FromLong": "ptr @PyBool_FromLong(i64)",
    "PyErr_Occurred": "ptr @PyErr_Occurred()",
    "PyErr_Clear": "void @PyErr_Clear()",
    "PyErr_SetString": "void @PyErr_SetString(ptr, ptr)",
    "PyTuple_Size": "i64 @PyTuple_Size(ptr)",
    "PyTuple_GetItem": "ptr @PyTuple_GetItem(ptr, i64)",
    "PyTuple_New": "ptr @PyTuple_New(i64)",
    "PyTuple_SetItem": "i32 @PyTuple_SetItem(ptr, i64, ptr)",
    "PyEval_SaveThread": "ptr @PyEval_SaveThread()",
    "PyEval_RestoreThread": "void @PyEval_RestoreThread(ptr)",
    "Py_DecRef": "void @Py_DecRef(ptr)",
    "Py_IncRef": "void @Py_IncRef(ptr)",
}
OBJECTS = (
    "_Py_NoneStruct", "_Py_NotImplementedStruct", "_Py_TrueStruct", "_Py_FalseStruct", "PyExc_IndexError",
    "PyExc_ZeroDivisionError", "PyExc_ValueError",
)  # fmt: skip
MESSAGES = {
    "outside": "native code: an index is out of bounds",
    "by_zero": "native code: division by zero",
    "read_only": "native code writes into an array that is read-only",
}


class Entry:
    """The text of an entry.

    `name`: of the lowered function · `kinds`: of its parameters · `answer`: of what it returns · `writes`: the numbers
    of the arrays among them into which it writes.
    """

    def __init__(
        self,
        name: str,
        kinds: Sequence[Kind],
        answer: Kind,
        *,
        writes: frozenset[int],
        may_fail: bool,
        keeps_lock: bool,
    ) -> None:
        self.name, self.kinds, self.answer = name, kinds, answer
        self.writes, self.may_fail, self.keeps_lock = writes, may_fail, keeps_lock
        self.lines: list[str] = []
        self.places: list[str] = []
        self.words: list[str] = []
        self.capsules: list[str] = []
        self.count = 0

    def text(self) -> str:
        """The text, with all that it declares."""
        self._read_arguments()
        self._call()
        heads = [f"declare {line}" for line in FUNCTIONS.values()]
        heads += [f"@{name} = external global ptr" for name in OBJECTS]
        for name, message in MESSAGES.items():
            heads.append(f'@{name} = internal constant [{len(message) + 1} x i8] c"{message}\\00"')
        body = [*self.places, *self.lines, *self._endings()]
        head = f"define ptr @{ENTRY}(ptr %self, ptr %args, i64 %given) nounwind {{"
        return "\n".join([*heads, head, *body, "}", ""])

    def _new(self, what: str) -> str:
        self.count += 1
        self.lines.append(f"  %t{self.count} = {what}")
        return f"%t{self.count}"

    def _go_on_if(self, condition: str, otherwise: str) -> None:
        self.count += 1
        self.lines += [f"  br i1 {condition}, label %on{self.count}, label %{otherwise}", f"on{self.count}:"]

    # -- arguments

    def _read_arguments(self) -> None:
        self._go_on_if(self._new(f"icmp eq i64 %given, {len(self.kinds)}"), "other")
        for at, kind in enumerate(self.kinds):
            place = self._new(f"getelementptr ptr, ptr %args, i64 {at}")
            self._read(self._new(f"load ptr, ptr {place}"), kind)

    def _read(self, item: str, kind: Kind) -> None:
        if isinstance(kind, TupleKind):
            size = self._new(f"call i64 @PyTuple_Size(ptr {item})")
            self._go_on_if(self._new(f"icmp eq i64 {size}, {len(kind.kinds)}"), "other")
            for at, member in enumerate(kind.kinds):
                self._read(self._new(f"call ptr @PyTuple_GetItem(ptr {item}, i64 {at})"), member)
        elif isinstance(kind, Array):
            self._read_array(item, kind)
        elif kind == BOOL:
            is_true = self._new(f"icmp eq ptr {item}, @_Py_TrueStruct")
            is_false = self._new(f"icmp eq ptr {item}, @_Py_FalseStruct")
            self._go_on_if(self._new(f"or i1 {is_true}, {is_false}"), "other")
            self.words.append(f"i1 {is_true}")
        else:
            self._read_number(item, is_signed=kind != U64)

    def _read_number(self, item: str, *, is_signed: bool) -> None:
        number = item
        if not is_signed:
            number = self._new(f"call ptr @PyNumber_Index(ptr {item})")
            self._keep(number)
            self._go_on_if(self._new(f"icmp ne ptr {number}, null"), "other")
        found = self._new(f"call i64 @PyLong_As{'' if is_signed else 'Unsigned'}LongLong(ptr {number})")
        self.count += 1
        asked, on = f"asked{self.count}", f"on{self.count}"
        self.lines.append(f"  br i1 {self._new(f'icmp eq i64 {found}, -1')}, label %{asked}, label %{on}")
        self.lines.append(f"{asked}:")
        error = self._new("call ptr @PyErr_Occurred()")
        self.lines.append(f"  br i1 {self._new(f'icmp eq ptr {error}, null')}, label %{on}, label %other")
        self.lines.append(f"{on}:")
        self.words.append(f"i64 {found}")

    def _keep(self, item: str) -> None:
        """A reference that is let go at the end; it may be null."""
        place = f"%kept{len(self.capsules)}"
        self.places += [f"  {place} = alloca ptr", f"  store ptr null, ptr {place}"]
        self.capsules.append(place)
        self.lines.append(f"  store ptr {item}, ptr {place}")

    def _read_array(self, item: str, kind: Array) -> None:
        capsule = self._new(f"call ptr @PyObject_GetAttr(ptr {item}, ptr %self)")
        self._keep(capsule)
        self._go_on_if(self._new(f"icmp ne ptr {capsule}, null"), "other")
        array = self._new(f"call ptr @PyCapsule_GetPointer(ptr {capsule}, ptr null)")
        self._go_on_if(self._new(f"icmp ne ptr {array}, null"), "other")
        sort = "b" if kind.element == BOOL else "i" if kind.element.signed else "u"
        flags = self._field(array, FLAGS, "i32")
        wanted = (C_CONTIGUOUS if kind.contiguous else 0) | (ALIGNED if kind.aligned else 0) | NOT_SWAPPED
        same = [
            self._new(f"icmp eq i32 {self._field(array, DIMENSIONS, 'i32')}, {kind.dims}"),
            self._new(f"icmp eq i8 {self._field(array, SORT, 'i8')}, {ord(sort)}"),
            self._new(f"icmp eq i32 {self._field(array, ITEM_SIZE, 'i32')}, {kind.element.size}"),
            self._new(f"icmp eq i32 {self._new(f'and i32 {flags}, {wanted}')}, {wanted}"),
        ]
        found = same[0]
        for bit in same[1:]:
            found = self._new(f"and i1 {found}, {bit}")
        self._go_on_if(found, "other")
        number = sum(word.startswith("ptr") for word in self.words)
        if number in self.writes:
            may_write = self._new(f"icmp ne i32 {self._new(f'and i32 {flags}, {WRITEABLE}')}, 0")
            self._go_on_if(may_write, "read_only_array")
        self.words.append(f"ptr {self._field(array, DATA, 'ptr')}")
        for offset in (SHAPE, STRIDES):
            numbers = self._field(array, offset, "ptr")
            for at in range(kind.dims):
                place = self._new(f"getelementptr i64, ptr {numbers}, i64 {at}")
                self.words.append(f"i64 {self._new(f'load i64, ptr {place}')}")

    def _field(self, array: str, offset: int, llvm: str) -> str:
        place = self._new(f"getelementptr i8, ptr {array}, i64 {offset}")
        return self._new(f"load {llvm}, ptr {place}")

    # -- the call, and its answer

    def _call(self) -> None:
        if self.may_fail:
            self.places += ["  %failure = alloca i64", "  store i64 0, ptr %failure"]
            self.words.append("ptr %failure")
        state = "" if self.keeps_lock else self._new("call ptr @PyEval_SaveThread()")
        whole = returned_type(self.answer)
        call = f'call {whole} @"{self.name}"({", ".join(self.words)})'
        found = ""
        if whole == "void":
            self.lines.append(f"  {call}")
        else:
            found = self._new(call)
        if state:
            self.lines.append(f"  call void @PyEval_RestoreThread(ptr {state})")
        if self.may_fail:
            self._go_on_if(self._new(f"icmp eq i64 {self._new('load i64, ptr %failure')}, 0"), "failed")
        types = list(leaves(self.answer))
        words = (
            [found]
            if len(types) == 1
            else [self._new(f"extractvalue {whole} {found}, {at}") for at in range(len(types))]
        )
        made = self._object(self.answer, iter(words))
        self.lines += ["  store ptr " + made + ", ptr %found", "  br label %end"]
        self.places.append("  %found = alloca ptr")

    def _object(self, kind: Kind, words: Any) -> str:
        if kind == NOTHING:
            self.lines.append("  call void @Py_IncRef(ptr @_Py_NoneStruct)")
            return "@_Py_NoneStruct"
        if isinstance(kind, TupleKind):
            made = self._new(f"call ptr @PyTuple_New(i64 {len(kind.kinds)})")
            for at, member in enumerate(kind.kinds):
                part = self._object(member, words)
                self._new(f"call i32 @PyTuple_SetItem(ptr {made}, i64 {at}, ptr {part})")
            return made
        word = next(words)
        if kind == OBJECT:
            return self._new(f"inttoptr i64 {word} to ptr")
        if kind == BOOL:
            return self._new(f"call ptr @PyBool_FromLong(i64 {self._new(f'zext i1 {word} to i64')})")
        return self._new(f"call ptr @PyLong_From{'Unsigned' if kind == U64 else ''}LongLong(i64 {word})")

    def _endings(self) -> list[str]:
        lines = ["end:"]
        for place in self.capsules:
            self.count += 1
            lines += [f"  %t{self.count} = load ptr, ptr {place}", f"  call void @Py_DecRef(ptr %t{self.count})"]
        lines += ["  %answer = load ptr, ptr %found", "  ret ptr %answer"]
        lines += [
            "other:", "  call void @PyErr_Clear()", "  call void @Py_IncRef(ptr @_Py_NotImplementedStruct)",
            "  store ptr @_Py_NotImplementedStruct, ptr %found", "  br label %end",
            *self._raising("read_only_array", "PyExc_ValueError", "read_only"),
            "failed:", "  %code = load i64, ptr %failure" if self.may_fail else "  %code = add i64 0, 0",
            "  %outside = icmp eq i64 %code, 1", "  br i1 %outside, label %failed_outside, label %failed_by_zero",
            *self._raising("failed_outside", "PyExc_IndexError", "outside"),
            *self._raising("failed_by_zero", "PyExc_ZeroDivisionError", "by_zero"),
        ]  # fmt: skip
        return lines

    @staticmethod
    def _raising(label: str, error: str, message: str) -> list[str]:
        return [
            f"{label}:", f"  %error_{label} = load ptr, ptr @{error}",
            f"  call void @PyErr_SetString(ptr %error_{label}, ptr @{message})", "  store ptr null, ptr %found",
            "  br label %end",
        ]  # fmt: skip


class _MethodDefinition(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("method", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("text", ctypes.c_char_p),
    )


def symbol_address(name: str) -> int:
    """The address of a function or an object of Python's C interface."""
    return ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, name))


def callable_at(address: int, name: str, library: Any) -> tuple[Callable[..., Any], Any]:
    """The entry at an address as a function of Python's, and what has to live as long."""
    definition = _MethodDefinition(name.encode(), address, FASTCALL, None)
    make: Any = ctypes.pythonapi.PyCFunction_NewEx
    make.argtypes, make.restype = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p], ctypes.py_object
    made: Callable[..., Any] = make(ctypes.addressof(definition), "__array_struct__", None)
    return made, (definition, library)
