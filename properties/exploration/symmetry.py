"""Symmetry: states that differ only in the numbers of interchangeable things are explored once.

A `NewType` of a user's spec is foldable if nothing distinguishes its numbers: they are keys of Maps, are compared
with one another for equality, and are passed on; a step or property orders none, adds none, and looks at no particular
one. Then a permutation of them leads from a run to a run. Of each set of states that permutations lead to, only the
one that is met first is kept, so a path to a state is a run as it is.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain, pairwise, permutations, product
from math import factorial, prod
from typing import Any, get_args, get_type_hints

from gapless.properties.exploration.bounds import Bound, initial_states
from gapless.spec.catalog import Spec, State, text_of
from gapless.spec.language import Map, replace

QUANTIFIERS = ("all_between", "some_between", "count_between")


Places = tuple[bool, ...]
"""For each key of a Map, and for its value, whether it is one of the interchangeable numbers."""


class NotSymmetric(Exception):  # noqa: N818 - its message says all.
    """No type of a spec can be folded: the message has the reason for each."""


@dataclass(frozen=True)
class SymmetryGroup:
    """The interchangeable numbers of a type, and where states have them."""

    kind: str
    members: tuple[int, ...]
    keyed: tuple[str, ...]  # Maps of one key, which is one of them
    valued: tuple[str, ...]  # Maps whose values alone are
    scalars: tuple[str, ...]  # fields that are one of them
    paired: tuple[tuple[str, int], ...]  # Maps of two keys, and the place of the one that is
    related: tuple[tuple[str, Places], ...]  # Maps of which an entry has several: both keys, or a key and the value
    others: tuple[str, ...]  # the other fields
    places: Mapping[str, Places]  # of each Map that has them: in which of its keys, and whether as its value

    def signatures(self, state: State) -> list[Hashable]:
        """The signature of each member in a state: equal for two that the state does not distinguish.

        Where members are related, two may have one signature and differ in those that they are related to.
        """
        columns: list[Any] = [getattr(state, name) for name in self.keyed]
        marks: list[Any] = [getattr(state, name) for name in self.scalars]
        chosen = [getattr(state, name).entries for name in self.valued]
        rows = [(getattr(state, name).entries, at) for name, at in self.paired]
        relations = [(getattr(state, name).entries, places) for name, places in self.related]
        return [
            (
                *(column[member] for column in columns),
                *(mark == member for mark in marks),
                *(frozenset(key for key, value in entries.items() if value == member) for entries in chosen),
                *(
                    frozenset((key[1 - at], value) for key, value in entries.items() if key[at] == member)
                    for entries, at in rows
                ),
                *(tuple(sorted(_seen_from(member, entries, places))) for entries, places in relations),
            )
            for member in self.members
        ]

    def key(self, state: State) -> Hashable:
        """A value that is equal for two states if a permutation of the members leads from one to the other."""
        signatures = self.signatures(state)
        rest = [_contents(getattr(state, name)) for name in self.others]
        folded = (*rest, *self._outside(state), *sorted(map(_ordered, signatures)))
        return (*folded, min(self._arranged(state, signatures))) if self.related else folded

    def _arranged(self, state: State, signatures: Sequence[Hashable]) -> Iterator[Any]:
        """The relations of a state for each order of the members that their signatures leave."""
        alike: dict[Hashable, list[int]] = {}
        for member, signature in zip(self.members, signatures, strict=True):
            alike.setdefault(_ordered(signature), []).append(member)
        relations = [([*map(_numbers, getattr(state, name).entries.items())], places) for name, places in self.related]
        for orders in product(*(permutations(alike[signature]) for signature in sorted(alike))):  # type: ignore[type-var]
            place = dict(zip(chain.from_iterable(orders), self.members, strict=True))
            yield tuple(
                tuple(sorted(_renamed(entry, places, place) for entry in entries)) for entries, places in relations
            )

    def _outside(self, state: State) -> Iterator[Hashable]:
        """The parts of a state that are about numbers which are no members, such as -1 for none."""
        for name in self.scalars:
            mark = getattr(state, name)
            yield None if mark in self.members else mark
        for name in self.keyed:
            yield tuple(sorted((k, v) for k, v in getattr(state, name).entries.items() if k not in self.members))
        for name in self.valued:
            yield tuple(sorted((k, v) for k, v in getattr(state, name).entries.items() if v not in self.members))
        for name, at in self.paired:
            yield tuple(sorted((k, v) for k, v in getattr(state, name).entries.items() if k[at] not in self.members))

    def size(self, state: State) -> int:
        """The number of states to which permutations of the members lead from a state, itself among them."""
        signatures = self.signatures(state)
        if self.related:
            arranged = Counter(self._arranged(state, signatures))
            return factorial(len(self.members)) // arranged[min(arranged)]
        return factorial(len(self.members)) // prod(map(factorial, Counter(signatures).values()))

    def exchanged(self, state: State, one: int, other: int) -> State:
        """The state with two members exchanged."""
        names = {one: other, other: one}
        changes: dict[str, Any] = {
            name: names.get(mark, mark) for name in self.scalars for mark in (getattr(state, name),)
        }
        for name, places in self.places.items():
            kept = getattr(state, name)
            exchanged = kept.cleared()
            for entry in map(_numbers, kept.entries.items()):
                exchanged = exchanged.set(*_renamed(entry, places, names))
            changes[name] = exchanged
        return replace(state, **changes)


def _renamed(entry: Sequence[int], places: Places, names: Mapping[int, int]) -> tuple[int, ...]:
    """An entry of a Map with other names of the members in it."""
    return tuple(names.get(one, one) if here else one for one, here in zip(entry, places, strict=True))


def _seen_from(member: int, entries: Mapping[Any, int], places: Places) -> Iterator[tuple[tuple[int, int], ...]]:
    """The entries of a relation in which a member is, without the names of the others."""
    for entry in map(_numbers, entries.items()):
        if (member, True) in zip(entry, places, strict=True):
            yield tuple((1, one) if not here else (0, one == member) for one, here in zip(entry, places, strict=True))


def _numbers(entry: tuple[Any, int]) -> tuple[int, ...]:
    """The numbers of an entry of a Map: its key, or both, and its value."""
    key, value = entry
    return (*key, value) if isinstance(key, tuple) else (key, value)


def _contents(value: Any) -> Hashable:
    return (value.entries, value.default) if isinstance(value, Map) else value


def _whole(initial: State) -> Callable[[State], Hashable]:
    """A function that reads all fields of a state."""
    names = [field.name for field in fields(initial)]
    return lambda state: tuple(_contents(getattr(state, name)) for name in names)


def _ordered(signature: Any) -> tuple[Any, ...]:
    """A signature that can be sorted."""
    return tuple(tuple(sorted(part)) if isinstance(part, frozenset) else part for part in signature)


def folding(spec: Spec, bound: Bound) -> SymmetryGroup:
    """The folding of the type with most members. Raises NotSymmetric."""
    tree = ast.parse(text_of(spec.module))
    kinds = [name for name in _new_types(tree) if hasattr(spec.module, name)]
    found, reasons = [], []
    for kind in kinds:
        try:
            found.append(_Uses(spec, bound, tree, kind).folding())
        except NotSymmetric as reason:
            reasons.append(f"{kind}: {reason}")
    if not found:
        raise NotSymmetric("; ".join(reasons) or "it has no NewType whose numbers could be exchanged")
    return max(found, key=lambda one: len(one.members))


def _new_types(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="NewType"))):
                yield name


class _Uses:
    """The uses of one type in a spec's file. Raises NotSymmetric where one of them tells its numbers apart."""

    def __init__(self, spec: Spec, bound: Bound, tree: ast.Module, kind: str) -> None:
        self.spec, self.bound, self.tree, self.kind = spec, bound, tree, kind
        self.type = getattr(spec.module, kind)
        self.hints = get_type_hints(type(spec.initial))
        self.members = self._members()
        self.functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}

    def folding(self) -> SymmetryGroup:
        """The folding of the type."""
        if len(self.spec.files) != 1:
            raise NotSymmetric("the spec is made of others")
        self._check_initial()
        for name, function in self.functions.items():
            if name in self.spec.starts:
                continue  # what it makes is looked at
            kinds = {one.arg: self._is_kind(one.annotation) for one in function.args.args}
            self._check(function.body, kinds, returns=self._is_kind(function.returns))
        for node in self.tree.body:
            if _is_bound(node):
                if "worth" in ast.unparse(node):
                    raise NotSymmetric("BOUND says which of its numbers are worth trying")
                self._check([node], {}, returns=False)
        group = self._group()
        self._check_starts(group)
        return group

    def _group(self) -> SymmetryGroup:
        """The folding of the state's fields."""
        kinds = {name: tuple(one is self.type for one in get_args(hint)) for name, hint in self.hints.items()}
        places = {name: kind for name, kind in kinds.items() if any(kind)}
        alone = {name: kind for name, kind in places.items() if sum(kind) == 1}
        named = tuple(name for name, hint in self.hints.items() if hint is self.type)
        return SymmetryGroup(
            self.kind,
            self.members,
            keyed=tuple(name for name, kind in alone.items() if kind == (True, False)),
            valued=tuple(name for name, kind in alone.items() if kind[-1]),
            scalars=named,
            paired=tuple((name, kind.index(True)) for name, kind in alone.items() if len(kind) > 2 and not kind[-1]),
            related=tuple((name, kind) for name, kind in places.items() if sum(kind) > 1),
            others=tuple(name for name in self.hints if name not in {*named, *places}),
            places=places,
        )

    def _check_starts(self, group: SymmetryGroup) -> None:
        """Raise NotSymmetric where an exchange of two members leads from a first state to what is none."""
        if not self.spec.starts:
            return
        read = _whole(self.spec.initial)
        starts = list(initial_states(self.bound, self.spec))
        known = {read(state) for state in starts}
        for one, other in pairwise(self.members):
            if any(read(group.exchanged(state, one, other)) not in known for state in starts):
                raise NotSymmetric("INITIALS tell them apart in the beginning")

    def _members(self) -> tuple[int, ...]:
        """The numbers of the type that the bound tries, which must be the same everywhere."""
        tried = set()
        for name, step in self.spec.actions.items():
            hints = get_type_hints(step)
            for argument in self.spec.parameters[name]:
                if hints[argument] is self.type:
                    tried.add(tuple(sorted(self._tried(argument, name))))
        if len(tried) != 1:
            raise NotSymmetric("its arguments are tried with different numbers" if tried else "no step has one")
        members: tuple[int, ...] = tried.pop()
        for holds in (*self.spec.invariants(), *self.spec.step_properties()):
            for argument, hint in get_type_hints(holds).items():
                if hint is self.type and self._tried(argument) != set(members):
                    raise NotSymmetric(f"{holds.__name__} is asked of other numbers than steps are tried with")
        return members

    def _tried(self, argument: str, step: str = "") -> set[int]:
        """The numbers that an argument is tried with."""
        some = self.bound.numbers.get(f"{step}.{argument}", self.bound.numbers.get(argument, ()))
        if callable(some):
            raise NotSymmetric(f"the numbers of {argument} depend on other arguments")
        return set(some)

    def _check_initial(self) -> None:
        for field in fields(self.spec.initial):
            value, hint = getattr(self.spec.initial, field.name), self.hints[field.name]
            kinds = get_args(hint)
            distinguished = value.entries if isinstance(value, Map) else hint is self.type and value in self.members
            distinguished = distinguished and not self.spec.starts  # then it is no first state
            if distinguished or (kinds[1:] and kinds[-1] is self.type and value.default in self.members):
                raise NotSymmetric(f"{field.name} tells them apart in the beginning")

    def _is_kind(self, annotation: ast.expr | None) -> bool:
        return isinstance(annotation, ast.Name) and annotation.id == self.kind

    def _check(self, nodes: Sequence[ast.stmt], kinds: dict[str, bool], *, returns: bool) -> None:
        """Look at statements; `kinds` says of each name if it stands for a number of the type, and gets more."""
        for node in nodes:
            names = {name for name, is_kind in kinds.items() if is_kind}
            match node:
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                ):
                    if kinds.setdefault(name, now := self._value(value, names)) != now:
                        raise self._apart(node)
                case ast.If(test=test, body=body, orelse=orelse):
                    self._value(test, names)
                    self._check(body, kinds, returns=returns)
                    self._check(orelse, kinds, returns=returns)
                case ast.Return(value=ast.expr() as value):
                    self._require(value, returns, names)
                case ast.Expr(value=value):
                    self._value(value, names)
                case _:
                    raise self._apart(node)

    def _value(self, node: ast.expr, names: set[str]) -> bool:  # noqa: C901, PLR0911, PLR0912 - a kind of expression a case
        """True if an expression is a number of the type. Raises NotSymmetric where it tells such numbers apart."""
        match node:
            case ast.Name(id=name):
                return name in names
            case ast.Attribute(value=whole, attr=attr) if attr in self.hints:
                self._value(whole, names)
                return self.hints[attr] is self.type
            case ast.Call(func=ast.Name(id=name), args=[value]) if name == self.kind:
                if not self._value(value, names):
                    raise self._apart(node)
                return True
            case ast.Call(func=ast.Name(id=word), args=[low, high, ast.Lambda() as holds]) if word in QUANTIFIERS:
                self._quantified(low, high, holds, names)
                return False
            case ast.Subscript(value=value, slice=key):
                *of_keys, of_value = self._map_kinds(value)
                for each, kind in zip(key.elts if isinstance(key, ast.Tuple) else [key], of_keys, strict=True):
                    self._require(each, kind, names)
                self._value(value, names)
                return of_value
            case ast.Call(func=ast.Attribute(value=value, attr="set"), args=args):
                for each, kind in zip(args, self._map_kinds(value), strict=True):
                    self._require(each, kind, names)
                self._value(value, names)
                return False
            case ast.Call(func=ast.Attribute(value=value, attr="forget_from")) if any(self._map_kinds(value)[:-1]):
                raise self._apart(node)
            case ast.Call(func=ast.Name(id="replace"), args=[state], keywords=keywords):
                self._value(state, names)
                for one in keywords:
                    self._require(one.value, self.hints.get(one.arg or "") is self.type, names)
                    kinds = self._kinds_of(one.arg or "")
                    if kinds and kinds != self._map_kinds(one.value):
                        raise self._apart(node)
                return False
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in self.functions:
                wanted = [self._is_kind(one.annotation) for one in self.functions[name].args.args]
                for given, belongs in zip(args, wanted, strict=True):
                    self._require(given, belongs, names)
                return self._is_kind(self.functions[name].returns)
            case ast.Compare(left=left, ops=ops, comparators=others):
                self._compared(node, [left, *others], ops, names)
                return False
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._value(test, names)
                either, otherwise = self._value(body, names), self._value(orelse, names)
                if either != otherwise:
                    raise self._apart(node)
                return either
            case ast.Lambda(body=body):
                return self._value(body, names)
        for part in ast.iter_child_nodes(node):
            inner = part.value if isinstance(part, ast.keyword) else part
            if isinstance(inner, ast.expr) and self._value(inner, names):
                raise self._apart(node)
        return False

    def _require(self, node: ast.expr, wanted: bool, names: set[str]) -> None:  # noqa: FBT001 - what is wanted
        """A number of the type where one belongs, and another where not."""
        if self._value(node, names) != wanted:
            raise self._apart(node)

    def _kinds_of(self, name: str) -> Places:
        """True for each key of a field that is a Map, and for its value, if it is of the type."""
        return tuple(one is self.type for one in get_args(self.hints.get(name)))

    def _map_kinds(self, node: ast.expr) -> Places:
        """True for each key, and for the value, of a Map, if it is of the type."""
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value  # of m.set(…)[…]
        match node:
            case ast.Attribute(attr=attr) if kinds := self._kinds_of(attr):
                return kinds
            case ast.IfExp(body=yes, orelse=no) if self._map_kinds(yes) == self._map_kinds(no):
                return self._map_kinds(yes)
        raise self._apart(node)

    def _quantified(self, low: ast.expr, high: ast.expr, holds: ast.Lambda, names: set[str]) -> None:
        """A condition of all numbers between two ends: of other numbers, or of all members."""
        variable = holds.args.args[0].arg
        try:
            self._value(low, names)
            self._value(high, names)
            self._value(holds.body, names - {variable})
        except NotSymmetric:
            self._require_all(low, high, holds, names)
            self._value(holds.body, {*names, variable})

    def _compared(self, node: ast.Compare, parts: list[ast.expr], ops: list[ast.cmpop], names: set[str]) -> None:
        """Compared for equality with another, or found to be one of all members."""
        are = [self._value(part, names) for part in parts]
        if not any(are):
            return
        if all(are) and all(isinstance(op, ast.Eq | ast.NotEq) for op in ops):
            return
        match parts, ops:
            case [low, _, high], [ast.LtE(), ast.Lt()] if are == [False, True, False]:
                self._require_all(low, high, node, names)
            case _:
                raise self._apart(node)

    def _require_all(self, low: ast.expr, high: ast.expr, node: ast.expr, names: set[str]) -> None:
        """Raise NotSymmetric where ends are not those of all members."""
        self._value(low, names)
        self._value(high, names)
        first, last = self._number(low), self._number(high)
        if first is None or last is None or tuple(range(first, last)) != self.members:
            raise self._apart(node)

    def _number(self, node: ast.expr) -> int | None:
        """The number that an expression is in every state."""
        match node:
            case ast.Constant(value=int() as number):
                return number
            case ast.Name(id=name) if isinstance(constant := getattr(self.spec.module, name, None), int):
                return constant
            case ast.Attribute(value=ast.Name(), attr=attr) if attr in self.hints and not self._is_replaced(attr):
                return int(getattr(self.spec.initial, attr))
        return None

    def _is_replaced(self, name: str) -> bool:
        calls = (node for node in ast.walk(self.tree) if isinstance(node, ast.Call))
        return any(keyword.arg == name for call in calls if _is_replace(call) for keyword in call.keywords)

    def _apart(self, node: ast.expr | ast.stmt) -> NotSymmetric:
        return NotSymmetric(f"line {node.lineno} tells its numbers apart: `{ast.unparse(node)}`")


def _is_replace(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "replace"


def _is_bound(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "BOUND" for t in node.targets)
