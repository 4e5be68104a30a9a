"""Compilation before the first call: what callers of a store run natively is compiled while it is opened.

What the store's own threads run, they compile themselves, and no caller waits for that.
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

from gapless.impl.records import input_checks, kernels, list_kernel, object_kernel, read_kernel
from gapless.impl.transactions import copy_kernel, scan_kernel
from gapless.native.language import Function

READING: tuple[Any, ...] = (
    read_kernel.read_one,
    read_kernel.extent,
    read_kernel.gather,
    read_kernel.with_key,
    kernels.judge,
    object_kernel.objects_of,
)
VIEWING: tuple[Any, ...] = (*READING, read_kernel.visible)
CALLING: tuple[Any, ...] = (
    *READING,
    kernels.encode_many,
    kernels.joined,
    list_kernel.gather,
    input_checks.first_unsound,
    copy_kernel.copy_halves,
    copy_kernel.half_properties,
    scan_kernel.find,
)


@cache
def prepare(functions: tuple[Any, ...]) -> None:
    """Compile these functions, unless all of them were compiled on this machine before: then the first call loads each.

    Where one is missing all are loaded, for a thread that loads waits for one that compiles. A process does it once.
    """
    codes = [cast("Function", function).code for function in functions]
    if not all(code.is_kept for code in codes):
        for code in codes:
            code.load()
