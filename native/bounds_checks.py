"""Bounds-checked code: the same function, each index compared with its array, for tests and for programs at random.

Set `GAPLESS_BOUNDS=1`, and every function is compiled so; here one function is, and nothing is kept on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gapless.native.kinds import Kind
from gapless.native.language import Function
from gapless.native.objects import convention
from gapless.native.objects.convention import ENTRY
from gapless.native.objects.object_code import assembled, link, llvm_text, processor


def compiled(of: Function, kinds: tuple[Kind, ...], *, is_checked: bool, level: int) -> Callable[..., Any]:
    """An entry for arguments of these kinds, optimized to a level of LLVM's. Raises LanguageError."""
    text, imports = llvm_text(of, kinds, features=processor()[1], is_checked=is_checked)
    library = link(of.__name__, assembled(text, level=level), [ENTRY], imports)
    entry, alive = convention.callable_at(library[ENTRY], of.__name__, library)

    def called(*args: Any) -> Any:
        found = entry(*args)
        if found is NotImplemented:
            raise TypeError(f"{of.__name__}: arguments are of other kinds than {kinds}")
        return found

    called.__dict__["alive"] = alive
    return called
