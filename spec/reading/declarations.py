"""The declarations at the top of a spec file: its state, its numbers, its functions and tuples."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

Kind = str
"""The kind of a value: one of those below, `MAP_OF` one of them, or `LOG.State` for the state of a spec `log`."""

BOOL, NUMBER, FUNCTION, TEXT, UNKNOWN = "a truth value", "a number", "a function", "a text", ""
MAP_OF, PAIRS_OF = "a Map of ", "a Map by two keys of "
OF_THE_LANGUAGE = "gapless.spec.language"
NUMBERS_OF_THE_LANGUAGE = ((OF_THE_LANGUAGE, "Number"), (OF_THE_LANGUAGE, "Position"))

STATES_TAKEN = {"ACTIONS": 1, "INITIALS": 1, "INVARIANTS": 1, "STEP_PROPERTIES": 2, "AT_REST": 1, "ENABLED": 1}
"""The tuples that may end a spec file, of functions by name: how many states each function takes."""

OF_LAWS = {"ENABLED_AFTER_DEVIATIONS": 1}
"""The tuples that a module in `laws/` may have, too."""

OF_STEPS = ("ACTIONS", "INITIALS")
"""The tuples whose functions return a state."""

MORE_TUPLES = ("DEVIATIONS", "TAKEOVERS", "GIVEN_UP")
"""The tuples that say what real brokers do instead."""

OF_CALLS = ("CLAIMS", "REFINES")
"""The tuples of what is written as a call: `Claim(…)` and `Refines(…)`."""


def is_map(kind: Kind) -> bool:
    """True for a Map of any values."""
    return kind.startswith((MAP_OF, PAIRS_OF))


def is_pairs(kind: Kind) -> bool:
    """True for a Map of two keys."""
    return kind.startswith(PAIRS_OF)


def value_of(kind: Kind) -> Kind:
    """The kind of the values of a Map."""
    return kind.removeprefix(MAP_OF).removeprefix(PAIRS_OF)


def is_state(kind: Kind) -> bool:
    """True for the state of some spec."""
    return kind.endswith(".State")


@dataclass(frozen=True)
class SpecFile:
    """A spec file, parsed.

    `path`: what users call it · `name`: its own, such as `log` or `deviations.log` · `made_of`: the spec files whose
    steps it may call, by the name
    that it has for each · `called`: its functions that other spec files call.
    """

    path: str
    name: str
    tree: ast.Module
    made_of: Mapping[str, SpecFile] = field(default_factory=dict)
    called: frozenset[str] = frozenset()

    @property
    def states_taken(self) -> Mapping[str, int]:
        """The tuples that may end it, and how many states their functions take."""
        return STATES_TAKEN | OF_LAWS if self.name.startswith("laws.") else STATES_TAKEN

    @cached_property
    def functions(self) -> dict[str, ast.FunctionDef]:
        """Its functions by name."""
        return {node.name: node for node in self.tree.body if isinstance(node, ast.FunctionDef)}

    @cached_property
    def classes(self) -> dict[str, ast.ClassDef]:
        """Its classes by name."""
        return {node.name: node for node in self.tree.body if isinstance(node, ast.ClassDef)}

    @cached_property
    def enums(self) -> frozenset[str]:
        """Its classes whose members are numbers with names; of other enums than `IntEnum`, `classes` complains."""
        return frozenset(name for name, node in self.classes.items() if ENUMS & {*map(_last_name, node.bases)})

    def members(self, enum: str) -> list[str]:
        """The members of one of its IntEnums."""
        assigned = (node for node in self.classes[enum].body if isinstance(node, ast.Assign))
        return [name for node in assigned for name in names_given(node)]

    @cached_property
    def values(self) -> dict[str, ast.expr]:
        """The values that its names stand for at its top."""
        return {
            name: node.value
            for node in self.tree.body
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
            for name in names_given(node)
        }

    @cached_property
    def new_types(self) -> frozenset[str]:
        """Names given by `Offset = NewType("Offset", int)`: a call of one changes nothing."""
        return frozenset(name for name, value in self.values.items() if _is_number_type(value))

    @cached_property
    def imports(self) -> dict[str, tuple[str, str]]:
        """The module of every name that is imported, and its name there."""
        return {
            alias.asname or alias.name: (node.module or "", alias.name)
            for node in self.tree.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }

    def home(self, name: str) -> SpecFile:
        """The file that declares a name: itself, or the spec that it is imported from."""
        module, there = self.imports.get(name, ("", name))
        other = self.made_of.get(module.rpartition(".")[2])
        return other if other is not None and there == name and name not in self.made_of else self

    def fields(self, state: Kind) -> Mapping[str, Kind]:
        """The fields of a state, by name."""
        whose = state.rpartition(".")[0]
        if whose == self.name:
            return self._fields
        return next((other.fields(state) for other in self.made_of.values() if other.name == whose), {})

    @cached_property
    def _fields(self) -> dict[str, Kind]:
        if "State" not in self.classes:
            return {}
        members = (node for node in self.classes["State"].body if isinstance(node, ast.AnnAssign))
        return {ast.unparse(node.target): self.kind_of_annotation(node.annotation) for node in members}

    def kind_of_annotation(self, annotation: ast.expr | None) -> Kind:  # noqa: PLR0911 - a kind a line
        """The kind of value that an annotation promises; unknown where it is none that a spec file may have."""
        match annotation:
            case ast.Name(id="bool"):
                return BOOL
            case ast.Name(id="int"):
                return NUMBER
            case ast.Name(id=name) if self.imports.get(name) in NUMBERS_OF_THE_LANGUAGE:
                return NUMBER
            case ast.Name(id=name):
                home = self.home(name)
                if name in home.enums | home.new_types:
                    return NUMBER
                return f"{home.name}.State" if name == "State" and name in home.classes else UNKNOWN
            case ast.Attribute(value=ast.Name(id=spec), attr=name) if spec in self.made_of:
                return self.made_of[spec].kind_of_annotation(ast.Name(name))
            case ast.Subscript(value=ast.Name(id="Map"), slice=ast.Tuple(elts=[*keys, inner])) if 1 <= len(keys) <= 2:
                value, numbers = self.kind_of_annotation(inner), {*map(self.kind_of_annotation, keys)}
                of = MAP_OF if len(keys) == 1 else PAIRS_OF
                return of + value if numbers == {NUMBER} and value in (BOOL, NUMBER) else UNKNOWN
        return UNKNOWN

    def kind_of_name(self, name: str) -> Kind | None:
        """The kind of what a name stands for at the top; None where it stands for nothing."""
        home = self.home(name)
        if home is not self:
            return home.kind_of_name(name)
        if name in self.functions:
            return FUNCTION
        if name in self.values:
            return self._kind_of_value(self.values[name])
        if name in self.classes or name in self.imports or name in self.made_of:
            return UNKNOWN
        return None

    def _kind_of_value(self, value: ast.expr) -> Kind:
        match value:
            case ast.Constant(value=bool()):
                return BOOL
            case ast.Constant(value=str()):
                return TEXT
            case ast.Constant(value=int()) | ast.UnaryOp() | ast.BinOp() | ast.Attribute():
                return NUMBER
            case ast.Name(id=other) if other != ast.unparse(value) or other in self.values:
                return self.kind_of_name(other) or UNKNOWN
            case ast.Call(func=called):
                return self.kind_of_annotation(called)
        return UNKNOWN

    def number(self, value: ast.expr) -> int | None:
        """The number that an expression of numbers and names at the top comes to; None where it is none."""
        match value:
            case ast.Constant(value=int() as number):
                return int(number)
            case ast.Name(id=name):
                home = self.home(name)
                own = home.values.get(name)
                return None if own is None or own is value else home.number(own)
            case ast.Attribute(value=ast.Name(id=spec), attr=name) if spec in self.made_of:
                return self.made_of[spec].number(ast.Name(name))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                opposite = self.number(operand)
                return None if opposite is None else -opposite
            case ast.BinOp(left=left, op=op, right=right):
                one, other = self.number(left), self.number(right)
                return None if one is None or other is None else _computed(op, one, other)
        return None

    def tuple_of(self, name: str) -> list[ast.expr] | None:
        """The members of one of its tuples; None where there is none, or it is no tuple."""
        value = self.values.get(name)
        return list(value.elts) if isinstance(value, ast.Tuple) else None


ENUMS = {"IntEnum", "Enum", "StrEnum", "Flag", "IntFlag", "ReprEnum"}


def _last_name(base: ast.expr) -> str:
    return ast.unparse(base).rpartition(".")[2]


def _is_number_type(value: ast.expr) -> bool:
    """True for `NewType(…)`; and for `int`, of which `constants` complains, once."""
    return ast.unparse(value).startswith("NewType(") or (isinstance(value, ast.Name) and value.id in ("int", "bool"))


WORD = 2**63
"""The first number beyond 64 bits."""


def _computed(op: ast.operator, one: int, other: int) -> int | None:  # noqa: PLR0911 - an operation a case
    """An operation on numbers. For a power that cannot fit, a number that does not fit."""
    match op:
        case ast.Add():
            return one + other
        case ast.Sub():
            return one - other
        case ast.Mult():
            return one * other
        case ast.Pow() if other >= 0:
            return WORD if abs(one) > 1 and other > WORD.bit_length() else one**other
        case ast.FloorDiv() if other:
            return one // other
        case ast.Mod() if other:
            return one % other
    return None


def names_given(node: ast.Assign | ast.AnnAssign) -> Iterator[str]:
    """The names that a statement gives to a value."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return (target.id for target in targets if isinstance(target, ast.Name))


def loaded(node: ast.AST) -> Iterator[str]:
    """Every name that is looked up anywhere in a node."""
    return (part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load))
