"""Words of the language that Python has no short text for: each is a Python function and a text of LLVM's.

Memory is asked for by address where an array cannot span what is read: the caller has made sure that the bytes are its
own. Objects of Python are known by their addresses, and asked through Python's C interface, as C extensions ask: the
caller holds the interpreter lock. https://docs.python.org/3.11/c-api/index.html
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from gapless.native.kinds import I64, NOTHING, OBJECT, U64
from gapless.native.language import word

PREFETCH = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"


# -- memory ----------------------------------------------------------------------------------------------------------


@word(llvm="", kinds=(), answer=I64)
def address_of(array: Any) -> int:
    """The address of an array's first element."""
    return int(array.ctypes.data)


@word(llvm="", kinds=(I64, I64), answer=NOTHING)
def bytes_at(address: int, length: int) -> Any:
    """The bytes from an address on, as an array that does not own them."""
    memory: Any = (ctypes.c_uint8 * length).from_address(address)
    return np.frombuffer(memory, np.uint8)


ADDRESS_OF: Any = address_of
BYTES_AT: Any = bytes_at
"""The two words that the compiler knows: what they take or give is an array."""


def _loading(bits: int, *, big: bool) -> str:
    """The text that loads a number of so many bits, at any alignment."""
    swapped = f"  %right = call i{bits} @llvm.bswap.i{bits}(i{bits} %raw)\n" if big else ""
    raw = "%right" if big else "%raw"
    wide = f"  %wide = sext i{bits} {raw} to i64\n" if bits < 64 else ""
    return (
        f"  %place = inttoptr i64 %address to ptr\n  %raw = load i{bits}, ptr %place, align 1\n"
        f"{swapped}{wide}  ret i64 {'%wide' if bits < 64 else raw}"
    )


def _storing(bits: int) -> str:
    """The text that stores so many of the lower bits of a number, big-endian."""
    short = f"  %short = trunc i64 %value to i{bits}\n" if bits < 64 else ""
    value = "%short" if bits < 64 else "%value"
    return (
        f"{short}  %right = call i{bits} @llvm.bswap.i{bits}(i{bits} {value})\n"
        f"  %place = inttoptr i64 %address to ptr\n  store i{bits} %right, ptr %place, align 1\n  ret void"
    )


SWAPS = ("declare i32 @llvm.bswap.i32(i32)", "declare i64 @llvm.bswap.i64(i64)")


@word(llvm=_loading(32, big=True), kinds=(I64,), answer=I64, declares=SWAPS)
def i32_at(address: int) -> int:
    """The signed number of four bytes at an address, big-endian."""
    return int.from_bytes(ctypes.string_at(address, 4), "big", signed=True)


@word(llvm=_loading(64, big=True), kinds=(I64,), answer=I64, declares=SWAPS)
def i64_at(address: int) -> int:
    """The signed number of eight bytes at an address, big-endian."""
    return int.from_bytes(ctypes.string_at(address, 8), "big", signed=True)


@word(llvm=_loading(64, big=False), kinds=(I64,), answer=U64)
def word_at(address: int) -> Any:
    """Eight bytes at an address as one number: the first byte is the lowest."""
    return np.uint64(int.from_bytes(ctypes.string_at(address, 8), "little"))


@word(llvm=_storing(32), kinds=(I64, I64), answer=NOTHING, declares=SWAPS)
def put_i32(address: int, value: int) -> None:
    """Store the lower four bytes of a number at an address, big-endian."""
    ctypes.memmove(address, (int(value) & 0xFFFF_FFFF).to_bytes(4, "big"), 4)


@word(llvm=_storing(64), kinds=(I64, I64), answer=NOTHING, declares=SWAPS)
def put_i64(address: int, value: int) -> None:
    """Store a number of eight bytes at an address, big-endian."""
    ctypes.memmove(address, (int(value) & 0xFFFF_FFFF_FFFF_FFFF).to_bytes(8, "big"), 8)


@word(
    llvm="  %a = inttoptr i64 %to to ptr\n  %b = inttoptr i64 %whence to ptr\n"
    "  call void @llvm.memcpy.p0.p0.i64(ptr align 1 %a, ptr align 1 %b, i64 %count, i1 0)\n  ret void",
    kinds=(I64, I64, I64), answer=NOTHING, declares=("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",),
)  # fmt: skip
def copy_bytes(to: int, whence: int, count: int) -> None:
    """Copy bytes from one address to another; the two places do not overlap."""
    ctypes.memmove(to, whence, count)


@word(
    llvm="  %place = inttoptr i64 %address to ptr\n"
    "  call void @llvm.prefetch.p0(ptr %place, i32 0, i32 3, i32 1)\n  ret void",
    kinds=(I64,), answer=NOTHING, declares=(PREFETCH,),
)  # fmt: skip
def fetch(address: int) -> None:
    """Have the processor fetch what lies at an address, which is going to be read. Any address will do."""


@word(
    llvm="  %place = inttoptr i64 %address to ptr\n  %there = load <64 x i8>, ptr %place, align 1\n"
    "  %short = trunc i64 %byte to i8\n  %first = insertelement <64 x i8> poison, i8 %short, i64 0\n"
    "  %every = shufflevector <64 x i8> %first, <64 x i8> poison, <64 x i32> zeroinitializer\n"
    "  %same = icmp eq <64 x i8> %there, %every\n  %bits = bitcast <64 x i1> %same to i64\n  ret i64 %bits",
    kinds=(I64, I64), answer=U64,
)  # fmt: skip
def bytes_like(address: int, byte: int) -> Any:
    """A bit for each of the 64 bytes at an address: set where the byte has this value, the first is the lowest."""
    return np.uint64(sum(1 << n for n, one in enumerate(ctypes.string_at(address, 64)) if one == byte))


@word(
    llvm="  %found = call i64 @llvm.cttz.i64(i64 %bits, i1 0)\n  ret i64 %found",
    kinds=(U64,), answer=I64, declares=("declare i64 @llvm.cttz.i64(i64, i1)",),
)  # fmt: skip
def lowest_bit(bits: Any) -> int:
    """The place of the lowest bit that is set; 64 where none is."""
    number = int(bits)
    return (number & -number).bit_length() - 1 if number else 64


@word(
    llvm="  %found = call i64 @llvm.ctpop.i64(i64 %bits)\n  ret i64 %found",
    kinds=(U64,), answer=I64, declares=("declare i64 @llvm.ctpop.i64(i64)",),
)  # fmt: skip
def count_bits(bits: Any) -> int:
    """The number of bits that are set."""
    return int(bits).bit_count()


PAYLOAD = bytes.__basicsize__ - 1
"""The place of a bytes object's bytes, from its `id` on."""
TUPLE, TEXT, INTEGER, BYTES, DICTIONARY = range(5)
KINDS = np.array([id(kind) for kind in (tuple, str, int, bytes, dict)])
"""The addresses of these types in this process, which `kind_of_object` gives."""


# -- objects of Python -----------------------------------------------------------------------------------------------


def _asking(name: str, *parameters: str, answer: Any = I64) -> Callable[..., int]:
    """A function of Python's C interface, of addresses and numbers."""
    llvm = {I64: "i64", NOTHING: "void", OBJECT: "i64"}[answer]
    call = f"call {llvm} @{name}({', '.join(f'i64 %{one}' for one in parameters)})"
    body = f"  {call}\n  ret void" if answer == NOTHING else f"  %found = {call}\n  ret i64 %found"

    def python(*args: int) -> Any:
        asked = getattr(ctypes.pythonapi, name)
        asked.argtypes, asked.restype = (
            [ctypes.c_ssize_t] * len(parameters),
            None if answer == NOTHING else ctypes.c_ssize_t,
        )
        return asked(*args)

    declares = (f"declare {llvm} @{name}({', '.join(['i64'] * len(parameters))})",)
    made: Any = word(llvm=body, kinds=(I64,) * len(parameters), answer=answer, declares=declares)(python)
    made.__name__, made.parameters = name, parameters
    return cast("Callable[..., int]", made)


tuple_size = _asking("PyTuple_Size", "tuple")
tuple_item = _asking("PyTuple_GetItem", "tuple", "index")  # its address
text_utf8 = _asking("PyUnicode_AsUTF8AndSize", "text", "size")  # where its UTF-8 lies; 0, and an error is set
hash_of = _asking("PyObject_Hash", "item")
integer = _asking("PyLong_AsLongLong", "item")  # -1, and an error may be set, where it is larger
bytes_size = _asking("PyBytes_Size", "item")
bytes_text = _asking("PyBytes_AsString", "item")
clear_error = _asking("PyErr_Clear", answer=NOTHING)
new_bytes = _asking("PyBytes_FromStringAndSize", "whence", "size")  # of any bytes, if they lie at 0; 0: no memory
new_integer = _asking("PyLong_FromLongLong", "value")
new_list = _asking("PyList_New", "size")  # of empty places
new_object = _asking("PyType_GenericAlloc", "kind", "size")  # of a kind of tuples, with so many empty places
list_item = _asking("PyList_GetItem", "list", "index")
put_in_list = _asking("PyList_SetItem", "list", "index", "item")  # the list has it from now on
put_in_tuple = _asking("PyTuple_SetItem", "tuple", "index", "item")  # as above, while nothing else refers to it
keep = _asking("Py_IncRef", "item", answer=NOTHING)
let_go = _asking("Py_DecRef", "item", answer=NOTHING)


@word(
    llvm="  %found = call i32 @PyDict_Next(i64 %item, i64 %at, i64 %key, i64 %value)\n"
    "  %wide = sext i32 %found to i64\n  ret i64 %wide",
    kinds=(I64, I64, I64, I64), answer=I64, declares=("declare i32 @PyDict_Next(i64, i64, i64, i64)",),
)  # fmt: skip
def dictionary_next(item: int, at: int, key: int, value: int) -> int:
    """See its page in Python's manual; the last three are addresses of words."""
    asked: Any = ctypes.pythonapi.PyDict_Next
    asked.argtypes, asked.restype = [ctypes.c_ssize_t] * 4, ctypes.c_int
    return int(asked(item, at, key, value))


_KIND = object.__basicsize__ - 8  # an object ends with it, as far as all objects are the same


@word(
    llvm=f"  %there = add i64 %item, {_KIND}\n  %place = inttoptr i64 %there to ptr\n"
    "  %found = load i64, ptr %place, align 8\n  ret i64 %found",
    kinds=(I64,), answer=I64,
)  # fmt: skip
def kind_of_object(item: int) -> int:
    """The address of an object's type."""
    return ctypes.c_ssize_t.from_address(item + _KIND).value


@word(llvm="  ret i64 %address", kinds=(I64,), answer=OBJECT)
def handed_over(address: int) -> Any:
    """The object at an address, which a function has made and nothing else refers to."""
    made = ctypes.cast(address, ctypes.py_object).value
    sys.getrefcount(made)
    let_go(address)  # one reference is the caller's, and one was ours
    return made
