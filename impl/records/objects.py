"""Python's own objects, for kernels: asked for their parts through Python's C interface, as C extensions ask.

An object is known by its address, which is its `id` in CPython, on which numba depends. Whoever calls holds the
interpreter lock, and what it asks about is kept alive and unchanged by somebody else meanwhile. A function that finds
another kind of object would raise; so the kind is looked at before, and it is an exact one: no code in Python runs.
C interface: https://docs.python.org/3.11/c-api/index.html.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.datamodel import models, register_default
from numba.extending import box, intrinsic

from gapless.impl.environment.native import njit
from gapless.impl.records.memory import word_at

TUPLE, TEXT, INTEGER, BYTES, DICTIONARY = range(5)
KINDS = np.array([id(kind) for kind in (tuple, str, int, bytes, dict)])
"""Where the kinds of objects lie that kernels know: what `kind_of` gives. Another process has them elsewhere."""

_KIND = object.__basicsize__ - 8  # an object ends with it, as far as all objects are the same


def _function(name: str, count: int, kind: types.Type = types.int64) -> types.ExternalFunction:
    """A function of so many addresses or numbers, by its name in the C interface."""
    return types.ExternalFunction(name, kind(*(types.int64,) * count))


tuple_size = _function("PyTuple_Size", 1)
tuple_item = _function("PyTuple_GetItem", 2)  # of a tuple, by index: its address
text_utf8 = _function("PyUnicode_AsUTF8AndSize", 2)  # where its UTF-8 lies; 0, and an error is set, where it has none
hash_of = _function("PyObject_Hash", 1)
integer = _function("PyLong_AsLongLong", 1)  # -1, and an error may be set, where it is larger
bytes_size = _function("PyBytes_Size", 1)
bytes_text = _function("PyBytes_AsString", 1)
dictionary_next = _function("PyDict_Next", 4, types.int32)  # see its page; what it is handed are addresses of words
clear_error = _function("PyErr_Clear", 0, types.void)
new_bytes = _function("PyBytes_FromStringAndSize", 2)  # of bytes that lie somewhere, or, at 0, of any; 0: no memory
let_go = _function("Py_DecRef", 1, types.void)


@njit
def kind_of(item: int) -> int:
    """The address of an object's type."""
    return int(np.int64(word_at(item + _KIND)))


class _Object(types.Type):  # type: ignore[misc]  # numba has no types
    """An object that a kernel has made, and hands to whoever called it."""


_object = _Object("object")


@register_default(_Object)
class _ObjectModel(models.PrimitiveModel):  # type: ignore[misc]  # as above
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.IntType(64))


@box(_Object)
def _box(_kind: Any, value: Any, context: Any) -> Any:
    return context.builder.inttoptr(value, context.pyapi.pyobj)


@intrinsic
def handed_over(_context: Any, _address: Any) -> Any:
    """What Python gets for the address of an object that nobody else holds."""

    def generate(_target: Any, _builder: Any, _signature: Any, arguments: Any) -> Any:
        return arguments[0]

    return _object(types.int64), generate
