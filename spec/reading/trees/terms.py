"""A value of a spec as a tree of nodes: what compiled readings of a spec are made of.

A spec's functions are run on terms in place of numbers (`forking.py`). Every operation makes a node, and every truth
test forks the run. Nodes are immutable and exist once: two terms of the same structure are one object, so `is` compares
them, and they are keys of dictionaries by identity. `==` is the spec's own comparison and makes a term.

    Constant(value)                 an integer; a truth value is 1 or 0
    Field(name, version)            a number of the state; BEFORE the step unless a reader says otherwise
    Argument(name)                  an argument of the event
    Variable(name)                  bound by a quantifier, or a number for which a property is asked
    At(map, key, version)           the value of a Map of the state at a key
    Pair(first, second)             the key of a Map that has two
    Operation(sign, left, right)    sign: one of SIGNS; a comparison is a truth value
    Negative(operand)               unary minus
    Every(low, high, variable, body)    `body`, a tree of truth values (`decision_trees.py`), for low <= variable < high
    Count(low, high, variable, body)    the number of those for which `body` is true
    Word(name, *parts)              a reader's own word, such as the most that a Map holds; opaque here

Each has `reads`, the fields, arguments, variables and Map accesses that it looks at (a Word's: those of its parts, and
itself). `MapTerm` is a Map of the state. `term_of` makes a term of a number; `replaced` substitutes terms for terms.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Self, cast
from weakref import WeakValueDictionary

from gapless.spec import forking
from gapless.spec.reading.trees.map_effects import Effect, Put, Window

BEFORE, AFTER = "before", "after"

COMPARISONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "//": "floordiv", "%": "mod"}
SIGNS = {**ARITHMETIC, **COMPARISONS}
CONTRARY = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
"""The comparison that is true where another is false."""
TURNED = {"==": "==", "!=": "!=", "<": ">", ">=": "<=", ">": "<", "<=": ">="}
"""The comparison that says the same with its sides exchanged."""
APPLIED: Mapping[str, Callable[[int, int], int]] = {sign: getattr(operator, name) for sign, name in SIGNS.items()}
"""The meaning of each sign for numbers."""

Reads = frozenset["Term"]
NOTHING: Reads = frozenset()


class Node:
    """A node that exists once for its parts: strings, integers and other nodes."""

    __slots__ = ("__weakref__", "parts", "reads")
    parts: tuple[Any, ...]
    reads: Reads

    def __new__(cls, *parts: Any) -> Self:
        """The node of these parts."""
        key = (cls, *parts)
        found = _made.get(key)
        if found is None:
            found = object.__new__(cls)
            found.parts = parts
            found.reads = found._reads_of_parts()
            _made[key] = found
        return cast("Self", found)

    def _reads_of_parts(self) -> Reads:
        found = NOTHING
        for part in self.parts:
            if isinstance(part, Node) and part.reads is not found:
                found = found | part.reads if found else part.reads
        return found

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self.parts!r}"


_made: WeakValueDictionary[tuple[Any, ...], Node] = WeakValueDictionary()


class Term(Node):
    """A value that is known only as a node. Its truth is a question."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        return forking.decide(self)

    def __neg__(self) -> Any:
        return Negative(self)

    def __eq__(self, other: object) -> Any:  # the spec's own comparison
        return _operation("==", self, other)

    def __ne__(self, other: object) -> Any:
        return _operation("!=", self, other)

    def __lt__(self, other: Any) -> Any:
        return _operation("<", self, other)

    def __le__(self, other: Any) -> Any:
        return _operation("<=", self, other)

    def __gt__(self, other: Any) -> Any:
        return _operation(">", self, other)

    def __ge__(self, other: Any) -> Any:
        return _operation(">=", self, other)

    def __add__(self, other: Any) -> Any:
        return _operation("+", self, other)

    def __radd__(self, other: Any) -> Any:
        return _operation("+", other, self)

    def __sub__(self, other: Any) -> Any:
        return _operation("-", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _operation("-", other, self)

    def __mul__(self, other: Any) -> Any:
        return _operation("*", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _operation("*", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _divided("//", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _divided("//", other, self)

    def __mod__(self, other: Any) -> Any:
        return _divided("%", self, other)

    def __rmod__(self, other: Any) -> Any:
        return _divided("%", other, self)


class Constant(Term):
    """A number. Where all that an operation is given is constant, so is what it makes."""

    __slots__ = ()
    __match_args__ = ("value",)

    def __new__(cls, value: int) -> Self:
        """The constant of a number; of a truth value, 1 or 0."""
        return super().__new__(cls, int(value))

    @property
    def value(self) -> int:
        """The number itself."""
        return cast("int", self.parts[0])

    def __bool__(self) -> bool:
        return self.value != 0

    def __neg__(self) -> int:
        return -self.value


class LeafTerm(Term):
    """A term that is looked at as it is, and of which no other is a part."""

    __slots__ = ()
    __match_args__: tuple[str, ...] = ("name",)

    @property
    def name(self) -> str:
        """The name in the spec."""
        return cast("str", self.parts[0])

    def _reads_of_parts(self) -> Reads:
        return frozenset((self,))


class Field(LeafTerm):
    """A number of the state."""

    __slots__ = ()
    __match_args__ = ("name", "version")

    def __new__(cls, name: str, version: str = BEFORE) -> Self:
        """The field of this name."""
        return super().__new__(cls, name, version)

    @property
    def version(self) -> str:
        """The state that it is looked up in."""
        return cast("str", self.parts[1])


class Argument(LeafTerm):
    """An argument of the event."""

    __slots__ = ()


class Variable(LeafTerm):
    """A number that a quantifier binds, or for which a property is asked."""

    __slots__ = ()


class At(LeafTerm):
    """The value of a Map at a key."""

    __slots__ = ()
    __match_args__ = ("name", "key", "version")

    def __new__(cls, name: str, key: Any, version: str = BEFORE) -> Self:
        """The value of the Map of this name."""
        return super().__new__(cls, name, term_of(key), version)

    @property
    def key(self) -> Term:
        """The key that is looked up."""
        return cast("Term", self.parts[1])

    @property
    def version(self) -> str:
        """The state that it is looked up in."""
        return cast("str", self.parts[2])

    def _reads_of_parts(self) -> Reads:
        return self.key.reads | {self}


class Pair(Term):
    """Two keys of a Map, as one."""

    __slots__ = ()
    __match_args__ = ("first", "second")

    def __new__(cls, first: Any, second: Any) -> Self:
        """The key of these two."""
        return super().__new__(cls, term_of(first), term_of(second))

    @property
    def first(self) -> Term:
        """The first of the two."""
        return cast("Term", self.parts[0])

    @property
    def second(self) -> Term:
        """The second of the two."""
        return cast("Term", self.parts[1])


class Operation(Term):
    """Two terms and a sign between them."""

    __slots__ = ()
    __match_args__ = ("sign", "left", "right")

    def __new__(cls, sign: str, left: Any, right: Any) -> Self:
        """The operation as it stands; `SIGNS` has the signs."""
        return super().__new__(cls, sign, term_of(left), term_of(right))

    @property
    def sign(self) -> str:
        """The sign between the two."""
        return cast("str", self.parts[0])

    @property
    def left(self) -> Term:
        """The term before the sign."""
        return cast("Term", self.parts[1])

    @property
    def right(self) -> Term:
        """The term behind the sign."""
        return cast("Term", self.parts[2])

    @property
    def compares(self) -> bool:
        """True if it is a truth value."""
        return self.sign in COMPARISONS


class Negative(Term):
    """A number with the other sign."""

    __slots__ = ()
    __match_args__ = ("operand",)

    @property
    def operand(self) -> Term:
        """The term behind the sign."""
        return cast("Term", self.parts[0])


class Quantifier(Term):
    """A term that speaks of all numbers between two, the second exclusive, by a tree of truth values."""

    __slots__ = ()
    __match_args__ = ("low", "high", "variable", "body")

    def __new__(cls, low: Any, high: Any, variable: Variable, body: Node) -> Self:
        """The term; `body` is a tree (`decision_trees.py`)."""
        return super().__new__(cls, term_of(low), term_of(high), variable, body)

    @property
    def low(self) -> Term:
        """The first number."""
        return cast("Term", self.parts[0])

    @property
    def high(self) -> Term:
        """The number behind the last."""
        return cast("Term", self.parts[1])

    @property
    def variable(self) -> Variable:
        """The number that it speaks of, in the tree."""
        return cast("Variable", self.parts[2])

    @property
    def body(self) -> Any:
        """The tree of what holds."""
        return self.parts[3]

    def _reads_of_parts(self) -> Reads:
        inside: Reads = self.body.reads - {self.variable}
        return self.low.reads | self.high.reads | inside


class Every(Quantifier):
    """That the tree holds for every number between."""

    __slots__ = ()


class Count(Quantifier):
    """The number of the numbers between for which the tree holds."""

    __slots__ = ()


class Word(Term):
    """A reader's own word about terms, strings and numbers."""

    __slots__ = ()
    __match_args__ = ("name", "given")

    @property
    def name(self) -> str:
        """The word itself."""
        return cast("str", self.parts[0])

    @property
    def given(self) -> tuple[Any, ...]:
        """The parts behind the word."""
        return self.parts[1:]

    def _reads_of_parts(self) -> Reads:
        return super()._reads_of_parts() | {self}


def term_of(value: Any) -> Term:
    """The value as a term; two keys of a Map are one. Raises TypeError where it is no number."""
    if isinstance(value, tuple):
        return Pair(*value)
    return value if isinstance(value, Term) else Constant(operator.index(value))


def reads_of(*values: Any) -> Reads:
    """The union of what terms among the values look at."""
    every: list[Reads] = [value.reads for value in values if isinstance(value, Node)]
    return NOTHING.union(*every)


def is_truth(term: Any) -> bool:
    """True if a term is 1 or 0 by its form: a comparison or a quantifier."""
    return isinstance(term, Every) or (isinstance(term, Operation) and term.compares)


def _operation(sign: str, left: Any, right: Any) -> Any:
    """An operation; identical terms are equal without a question, and constants are computed."""
    left, right = term_of(left), term_of(right)
    if sign == "==" and left is right:
        return True
    if isinstance(left, Constant) and isinstance(right, Constant):
        return APPLIED[sign](left.value, right.value)
    return Operation(sign, left, right)


def _divided(sign: str, left: Any, right: Any) -> Any:
    """A division, which raises ZeroDivisionError where numbers would: a divisor that is not known is asked about."""
    if right == 0:
        raise ZeroDivisionError
    return _operation(sign, left, right)


def replaced(node: Any, by: Mapping[Term, Term]) -> Any:
    """Substitute terms for some fields, arguments, variables and Map accesses in a term or tree.

    The new terms must not contain a variable that is bound there. Nothing is computed: an operation on constants is
    one.
    """
    if not isinstance(node, Node):
        return node
    if isinstance(node, Term) and node in by:
        return by[node]
    if by.keys().isdisjoint(node.reads):
        return node
    return type(node)(*(replaced(part, by) for part in node.parts))


# -- Maps ----------------------------------------------------------------------------------------------------------


class MapTerm(Window):
    """A Map of the state: the field that it began from, in one version of the state, and the effects since."""

    def __init__(
        self, field: str, default: int, *, version: str = BEFORE, empty: bool = False, effects: tuple[Effect, ...] = ()
    ) -> None:
        super().__init__(field, int(default), empty=empty, effects=effects)
        self.version = version

    def there(self, key: Any) -> At:
        """The value at `key` before the effects."""
        return At(self.field, key, self.version)

    def like(self, *, empty: bool, effects: tuple[Effect, ...]) -> MapTerm:
        """The same Map with other effects."""
        return MapTerm(self.field, self.default, version=self.version, empty=empty, effects=effects)

    def counted(self, word: str) -> Word:
        """The greatest value (`most`), or the number of `entries`, of a Map that no step has changed yet."""
        if self.effects or self.empty:
            raise TypeError(f"{word} of a Map that was written to")
        return Word(word, self.field, self.version)

    @property
    def untouched(self) -> bool:
        """True if nothing was written to it."""
        return not self.effects and not self.empty

    @property
    def structure(self) -> tuple[Any, ...]:
        """All that tells it from other Maps, as a key."""
        effects = tuple(
            ("put", term_of(e.key), term_of(e.value)) if isinstance(e, Put) else ("forget", term_of(e.low))
            for e in self.effects
        )
        return "map", self.field, self.version, self.default, self.empty, effects
