"""Boolean terms: *all of*, *any of*, *not* and *either*.

Z3's own `And`, `Or` and `Not` compare the sorts of all operands first, again and again, in Python: with thirty
operands that takes forty times as long as making the term. Here Z3 itself refuses what is no boolean.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import z3

TRUE, FALSE = z3.BoolVal(True), z3.BoolVal(False)  # noqa: FBT003 - these are what they are


def all_of(*terms: Any) -> Any:
    """That all of them are so."""
    return _made(z3.Z3_mk_and, terms)


def any_of(*terms: Any) -> Any:
    """That at least one of them is so."""
    return _made(z3.Z3_mk_or, terms)


def negated(term: Any) -> Any:
    """That it is not so."""
    return z3.BoolRef(z3.Z3_mk_not(CONTEXT.ref(), term.as_ast()), CONTEXT)


def either(question: Any, yes: Any, no: Any) -> Any:
    """`yes` where the question is so, and `no` elsewhere."""
    return z3.BoolRef(z3.Z3_mk_ite(CONTEXT.ref(), question.as_ast(), yes.as_ast(), no.as_ast()), CONTEXT)


CONTEXT = z3.main_ctx()


def _made(make: Callable[..., Any], terms: tuple[Any, ...]) -> Any:
    operands = (z3.Ast * len(terms))(*[term.as_ast() for term in terms])
    return z3.BoolRef(make(CONTEXT.ref(), len(terms), operands), CONTEXT)
