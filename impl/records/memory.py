"""Memory by address, for kernels: whole words where an array would take them apart byte by byte.

A kernel is handed the addresses of slots that lie in many files, and no array could span those. Nothing here looks at
what it is given: whoever calls has made sure that the bytes from `address` on are its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from gapless.impl.environment.mapped import Bytes

PAYLOAD = bytes.__basicsize__ - 1
"""Where a bytes object has its bytes, from its `id` on: in CPython, on which numba depends."""


def _loader(bits: int, kind: Any, *, big: bool) -> Any:
    """A function of an address that gives the integer of so many bits that lies there, at any alignment."""

    @intrinsic
    def load(_context: Any, _address: Any) -> Any:
        def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            whole = ir.IntType(bits)
            pointer = builder.inttoptr(arguments[0], whole.as_pointer())
            value = builder.load(pointer, align=1, typ=whole)
            value = builder.bswap(value) if big else value
            return builder.sext(value, ir.IntType(64)) if bits < 64 else value

        return kind(types.int64), generate

    return load


def _putter(bits: int) -> Any:
    """A function of an address and a value that puts so many of its lower bits there, big-endian."""

    @intrinsic
    def put(_context: Any, _address: Any, _value: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            whole = ir.IntType(bits)
            pointer = builder.inttoptr(arguments[0], whole.as_pointer())
            value = builder.trunc(arguments[1], whole) if bits < 64 else arguments[1]
            builder.store(builder.bswap(value), pointer, align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), generate

    return put


i32_at = _loader(32, types.int64, big=True)  # signed
i64_at = _loader(64, types.int64, big=True)
word_at = _loader(64, types.uint64, big=False)  # eight bytes as they lie: the first is the lowest
put_i32 = _putter(32)
put_i64 = _putter(64)


@intrinsic
def _pointer(_context: Any, _address: Any) -> Any:
    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


@njit(cache=True)
def bytes_at(address: int, length: int) -> Bytes:
    """The bytes that lie there, as an array that does not own them."""
    found: Bytes = carray(_pointer(address), length, np.uint8)
    return found


@intrinsic
def lowest_bit(_context: Any, _word: Any) -> Any:
    """The place of the lowest bit that is set in a word; 64 where none is."""

    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic
def copy_bytes(_context: Any, _to: Any, _whence: Any, _count: Any) -> Any:
    """So many bytes are copied from one address to another; the two do not overlap."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        to, whence, count = arguments
        cgutils.raw_memcpy(builder, builder.inttoptr(to, byte), builder.inttoptr(whence, byte), count, 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@intrinsic
def fetch(_context: Any, _address: Any) -> Any:
    """The processor is told that what lies there is going to be read. Any address will do."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        to_read, close_by, data = flag(0), flag(3), flag(1)
        builder.call(prefetch, [builder.inttoptr(arguments[0], byte), to_read, close_by, data])
        return context.get_dummy_value()

    return types.void(types.int64), generate
