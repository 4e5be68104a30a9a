"""Checks that each value in a spec's function is of the kind that its place wants: above all, a truth value is asked.

Readers take `if s.count:` in different ways: a number is a term to one, a piece of source to another, and never a
Python number. So a number is compared before it is asked, a Map is looked up before it is compared, and a name stands
for something that every reader knows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from inspect import Parameter, Signature, isfunction, signature

from gapless.spec import language
from gapless.spec.reading.complaints import LEAVE, Complaint, unknown
from gapless.spec.reading.declarations import (
    BOOL,
    FUNCTION,
    NUMBER,
    TEXT,
    UNKNOWN,
    Kind,
    SpecFile,
    is_map,
    is_pairs,
    is_state,
    loaded,
    names_given,
    value_of,
)

WORDS = {name: word for name in language.__all__ if isfunction(word := getattr(language, name))}
GUARDS = ("require", "applies", "assume")
MAP_WORDS = {name: word for name, word in vars(language.Map).items() if isfunction(word) and name[0] != "_"}


def misplaced(file: SpecFile, function: ast.FunctionDef) -> list[Complaint]:
    """The values in a function of a spec that are of another kind than their place wants."""
    reading = _Function(file, function)
    reading.statements(function.body)
    return reading.found


class _Function:
    """One function, read statement by statement; `names` are its parameters and what it has named so far."""

    def __init__(self, file: SpecFile, function: ast.FunctionDef) -> None:
        self.file = file
        self.names: dict[str, Kind] = {
            one.arg: file.kind_of_annotation(one.annotation)
            for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
        }
        self.states = {name for name, kind in self.names.items() if is_state(kind)}
        self.given = set(self.names)  # those that have a value on every way to where the reading is
        self.locals = {name for node in ast.walk(function) for name in _named_by(node)}
        self.returns = file.kind_of_annotation(function.returns)
        self.found: list[Complaint] = []
        for name in self.names:
            self.not_shadowed(function, name)
        if not (_ends(function.body) or _is_foreign(function.body[-1])):
            word = f"`{function.name}`, which may end without a value"
            self.complain(function, word, "`return …` on every way through it")

    def complain(self, node: ast.AST, word: str, instead: str) -> None:
        """Note a fault of a node."""
        self.found.append(Complaint(getattr(node, "lineno", 0), word, instead))

    def strange(self, node: ast.AST, name: str, names: Iterable[str], others: str, shown: str = "`{}`") -> None:
        """Note a name that stands for nothing, with the nearest of `names`."""
        word = f"`{ast.unparse(node)}`"
        self.found.append(unknown(getattr(node, "lineno", 0), word, name, names, others, shown))

    def statements(self, body: Sequence[ast.stmt]) -> None:
        """Read statements one after the other."""
        for node in body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self.name(node, name, self.kind(value))
                case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=ast.expr() as value):
                    wanted = self.file.kind_of_annotation(annotation)
                    self.wants(wanted, value)
                    self.name(node, name, wanted)
                case ast.If(test=test, body=then, orelse=otherwise):
                    self.truth(test)
                    before = set(self.given)
                    self.statements(then)
                    behind_yes, self.given = self.given, before
                    self.statements(otherwise)
                    if _ends(then):
                        continue
                    self.given = behind_yes if otherwise and _ends(otherwise) else behind_yes & self.given
                case ast.Return(value=ast.expr() as value):
                    self.wants(self.returns, value)
                case ast.Expr(value=value) if not isinstance(value, ast.Constant):
                    self.kind(value)

    def name(self, node: ast.AST, name: str, kind: Kind) -> None:
        """A name stands for a value from here on."""
        self.not_shadowed(node, name)
        if name in self.states:
            self.complain(node, f"`{name} = …`", "another name: that of the state is what the step begins with")
        self.given.add(name)
        same = self.names.get(name, kind) == kind
        self.names[name] = kind if same else UNKNOWN

    def not_shadowed(self, node: ast.AST, name: str) -> None:
        """Complain where a name hides a word of the language, or a function of the file."""
        if name in WORDS or name in ("Map", "Refused"):
            self.complain(node, f"`{name}` as a name", "another name: this is a word of the language")

    # -- what a place wants ----------------------------------------------------------------------------------------

    def truth(self, node: ast.expr) -> None:
        """Complain unless a value is a truth value."""
        kind = self.kind(node)
        if not kind and any(complaint.line == node.lineno for complaint in self.found):
            return  # a name in it stands for nothing, of which there is a complaint
        if kind != BOOL and not isinstance(node, ast.Constant | ast.Lambda):
            shown = ast.unparse(node)
            if kind == NUMBER:
                self.complain(node, f"`{shown}` as a truth value", f"`{_grouped(node)} != 0`: it is a number")
            else:
                what = f", which is {_shown(kind)}" * bool(kind)
                self.complain(node, f"`{shown}` as a truth value{what}", "a comparison of numbers")
        elif kind != BOOL:
            self.complain(node, f"`{ast.unparse(node)}` as a truth value", "`True`, `False`, or a comparison")

    def wants(self, wanted: Kind, node: ast.expr) -> None:
        """Complain unless a value is of the kind that is wanted; where its kind is unknown, it is only read."""
        if wanted == BOOL:
            self.truth(node)
            return
        kind = self.kind(node)
        fits = kind in (NUMBER, BOOL, UNKNOWN) if wanted == NUMBER else kind in (wanted, UNKNOWN)
        if wanted != UNKNOWN and not fits:
            instead = "the next state: `replace(s, …)`" if is_state(wanted) else f"{wanted}"
            self.complain(node, f"`{ast.unparse(node)}`, which is {_shown(kind)}", instead)

    # -- what a value is -------------------------------------------------------------------------------------------

    def kind(self, node: ast.AST) -> Kind:  # noqa: C901, PLR0911, PLR0912 - a kind of node a case
        """The kind of a value, all that it is made of being read."""
        match node:
            case ast.Constant(value=bool()):
                return BOOL
            case ast.Constant(value=int()):
                return NUMBER
            case ast.Constant(value=str()):
                return TEXT
            case ast.Name(id=name):
                return self.looked_up(node, name)
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name not in self.names:
                return self.member(node, name, attr)
            case ast.Attribute(value=value, attr=attr):
                return self.field(node, self.kind(value), attr)
            case ast.Subscript(value=value, slice=key):
                return self.looked_up_in(node, self.kind(value), key)
            case ast.Compare(left=left, comparators=others):
                for one in (left, *others):
                    self.comparable(one)
                return BOOL
            case ast.BoolOp(values=values):
                for one in values:
                    self.truth(one)
                return BOOL
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.truth(operand)
                return BOOL
            case ast.UnaryOp(operand=operand):
                self.wants(NUMBER, operand)
                if self.kind(operand) == BOOL:
                    shown = _grouped(operand)
                    self.complain(node, f"`{ast.unparse(node)}` of a truth value", f"`(-1 if {shown} else 0)`")
                return NUMBER
            case ast.BinOp(left=left, op=ast.FloorDiv() | ast.Mod(), right=right):
                self.wants(NUMBER, left)
                if not ((isinstance(right, ast.Name) and right.id not in self.names) or _positive(right)):
                    instead = "a positive number, or the name of one at the top: by others, readers round otherwise"
                    self.complain(node, f"`{ast.unparse(right)}` as a divisor", instead)
                elif (divisor := self.file.number(right)) is not None and divisor <= 0:
                    shown = f"`{ast.unparse(right)}`, which is {divisor}, as a divisor"
                    self.complain(node, shown, "a positive number")
                return NUMBER
            case ast.BinOp(left=left, right=right):
                self.wants(NUMBER, left)
                self.wants(NUMBER, right)
                return NUMBER
            case ast.IfExp(test=test, body=then, orelse=otherwise):
                self.truth(test)
                return _either(self.kind(then), self.kind(otherwise))
            case ast.Call():
                return self.call(node)
            case ast.Lambda():
                self.complain(node, f"`{ast.unparse(node)}`", "it in `all_between(low, high, lambda n: …)` only")
        return UNKNOWN  # what is no word at all, `vocabulary` complains of

    def looked_up_in(self, node: ast.AST, kind: Kind, key: ast.expr) -> Kind:
        """The kind of the value of a Map at its key, or at its two."""
        keys = key.elts if isinstance(key, ast.Tuple) else [key]
        for one in keys:
            self.wants(NUMBER, one)
        if is_map(kind) and len(keys) != 1 + is_pairs(kind):
            instead = "its two keys: `s.m[first, second]`" if is_pairs(kind) else "one key: `s.m[key]`"
            self.complain(node, f"`{ast.unparse(node)}` of {kind}", instead)
        return value_of(kind) if is_map(kind) else UNKNOWN

    def looked_up(self, node: ast.AST, name: str) -> Kind:
        """The kind of what a name stands for."""
        if name in self.locals and name not in self.given:
            self.complain(node, f"`{name}`, which has a value on some ways only", f"`{name} = …` before the `if`")
        if name in self.names:
            return self.names[name]
        kind = self.file.kind_of_name(name)
        if kind is None:
            others = "a parameter, a name given before, or a number named at the top of the file"
            known = (*self.names, *self.file.values.keys() - self.file.new_types, *self.file.functions, "True", "False")
            self.strange(node, name, known, others)
        elif kind in (FUNCTION, TEXT):
            self.complain(node, f"`{name}` as a value, which is {kind}", f"what it returns: `{name}(s, …)`")
        return kind or UNKNOWN

    def member(self, node: ast.AST, name: str, attr: str) -> Kind:
        """The kind of a member of an IntEnum, or of a number or a state of another spec."""
        home = self.file.home(name)
        if name in home.enums:
            members = home.members(name)
            if attr not in members:
                others = f"a member of `{name}`: {', '.join(members)}"
                self.strange(node, attr, members, others, f"`{name}.{{}}`")
            return NUMBER
        if name in self.file.made_of:
            kind = self.file.made_of[name].kind_of_name(attr)
            if kind is not None:
                return kind
        self.complain(node, f"`{name}.{attr}`", "a field of the state, or a member of an `IntEnum`")
        return UNKNOWN

    def field(self, node: ast.AST, kind: Kind, attr: str) -> Kind:
        """The kind of a field of a state."""
        if not is_state(kind):
            if kind == NUMBER and attr == "value":
                word = f"`{ast.unparse(node)}`, of what is a number already"
                self.found.append(Complaint(getattr(node, "lineno", 0), word, "`.value` out", LEAVE))
            elif kind:
                self.complain(
                    node,
                    f"`.{attr}` of `{ast.unparse(node).removesuffix(f'.{attr}')}`, which is {kind}",
                    "a field of the state",
                )
            return UNKNOWN
        fields = self.file.fields(kind)
        if attr not in fields:
            whole = f"`{ast.unparse(node).removesuffix(attr)}{{}}`"
            self.strange(node, attr, fields, f"a field of the state: {', '.join(fields)}", whole)
        return fields.get(attr, UNKNOWN)

    def comparable(self, node: ast.expr) -> None:
        """Complain of what cannot be compared: Maps key by key, states field by field."""
        kind = self.kind(node)
        if is_map(kind) or is_state(kind) or kind == FUNCTION:
            each = "each value by its key, which in an invariant is a parameter" if is_map(kind) else "its fields"
            self.complain(node, f"`{ast.unparse(node)}` in a comparison", f"{each}: only numbers are compared")

    # -- calls -----------------------------------------------------------------------------------------------------

    def call(self, node: ast.Call) -> Kind:
        """The kind of what a call returns, its arguments being read as the function wants them."""
        match node.func:
            case ast.Name(id="replace"):
                return self.replaced(node)
            case ast.Name(id=name) if name in WORDS:
                return self.word(node, name)
            case ast.Name(id=name) if name in self.file.home(name).functions:
                return self.own(node, self.file.home(name), name)
            case ast.Attribute(value=ast.Name(id=spec), attr=name) if name in self._of(spec):
                return self.own(node, self.file.made_of[spec], name)
            case ast.Attribute(value=value, attr=name) if name in MAP_WORDS:
                return self.of_map(node, self.kind(value), name)
        for one in _given(node):
            self.kind(one)
        return self.file.kind_of_annotation(node.func)  # of a number by its type, such as `Offset(3)`

    def _of(self, spec: str) -> Mapping[str, ast.FunctionDef]:
        return self.file.made_of[spec].functions if spec in self.file.made_of and spec not in self.names else {}

    def replaced(self, node: ast.Call) -> Kind:
        """`replace(s, field=…)`: each value of the kind of its field."""
        state = self.kind(node.args[0]) if node.args else UNKNOWN
        fields = self.file.fields(state)
        if len(node.args) != 1 or (state and not is_state(state)):
            self.complain(node, f"`{ast.unparse(node)}`", "the state first, then fields by name: `replace(s, …)`")
        for change in node.keywords:
            if is_state(state) and change.arg is not None and change.arg not in fields:
                word, others = f"`replace(…, {change.arg}=…)`", f"a field of the state: {', '.join(fields)}"
                self.found.append(unknown(node.lineno, word, change.arg, fields, others, "`{}=…`"))
            self.wants(fields.get(change.arg or "", UNKNOWN), change.value)
        return state

    def word(self, node: ast.Call, name: str) -> Kind:
        """A word of the language, whose parameters say what they want."""
        self.complete(node, name, signature(WORDS[name]))
        if name == "accepts":
            self.accepted(node)
        elif name == "implies":
            self.looked_at(node)
        parameters = list(signature(WORDS[name]).parameters.values())
        by_name = {parameter.name: parameter for parameter in parameters}
        pairs = zip(parameters, node.args, strict=False)
        wanted = [(one, value) for one, value in pairs if one.kind is not Parameter.VAR_POSITIONAL]
        for value in node.args[len(wanted) :]:
            self.kind(value)
        wanted += [(by_name[k.arg], k.value) for k in node.keywords if k.arg in by_name]
        for parameter, value in wanted:
            annotation = str(parameter.annotation)
            if annotation == "bool":
                self.truth(value)
            elif "Callable" in annotation:
                returned = {", bool]": BOOL, ", S]": UNKNOWN}  # a state: of which spec, its own function says
                self.function(value, next((kind for end, kind in returned.items() if annotation.endswith(end)), NUMBER))
            elif annotation != "str":  # sentences, which `vocabulary` looks at
                self.kind(value)
        return _returned(signature(WORDS[name]).return_annotation)

    def accepted(self, node: ast.Call) -> None:
        """`accepts(step, s, …)`: the arguments of the step, each of its kind."""
        match node.args:
            case [ast.Name(id=name), *given] if name in self.file.home(name).functions and name not in self.names:
                home = self.file.home(name)
            case [ast.Attribute(value=ast.Name(id=spec), attr=name), *given] if name in self._of(spec):
                home = self.file.made_of[spec]
            case _:
                return
        wanted = [one.arg for one in home.functions[name].args.args]
        if len(given) != len(wanted) or node.keywords:
            instead = f"each argument of `{name}`: `accepts({', '.join([ast.unparse(node.args[0]), *wanted])})`"
            self.complain(node, f"`{ast.unparse(node)}`", instead)
        else:
            self.own(ast.copy_location(ast.Call(node.args[0], given, []), node), home, name)

    def looked_at(self, node: ast.Call) -> None:
        """Complain of a step that is taken in `implies(…)`, whose premise keeps nothing from being looked at."""
        for call in _in_any_case(_given(node)):
            if self._may_refuse(call.func):
                word = f"`{ast.unparse(call)}` in `implies(…)`, which looks at both of its sides"
                asked = ", ".join(map(ast.unparse, (call.func, *_given(call))))
                instead = f"`not accepts({asked}) or …`: what follows is looked at where it is accepted"
                self.complain(call, word, instead)

    def _may_refuse(self, called: ast.expr) -> bool:
        """True for the name of a function that states a rule, or calls one that does."""
        match called:
            case ast.Name(id=name) if name not in self.names:
                return states_rules(self.file.home(name), name)
            case ast.Attribute(value=ast.Name(id=spec), attr=name):
                return name in self._of(spec) and states_rules(self.file.made_of[spec], name)
        return False

    def complete(self, node: ast.Call, name: str, wanted: Signature) -> None:
        """Complain unless a call gives each argument once; guards are looked at by `vocabulary`."""
        by_name = {one.arg: one.value for one in node.keywords if one.arg is not None}
        try:
            wanted.bind(*node.args, **by_name)
        except TypeError:
            parameters = ", ".join(wanted.parameters)
            if name not in GUARDS:
                self.complain(node, f"`{ast.unparse(node)}`", f"each argument of `{name}`: {parameters}")

    def function(self, node: ast.expr, returned: Kind) -> None:
        """A place for a function: a lambda of numbers that returns such a kind, or a function by its name."""
        match node:
            case ast.Lambda(args=args, body=body):
                own = {one.arg: NUMBER for one in args.args}
                if len(own) != 1:
                    self.complain(node, f"`lambda {', '.join(own)}`", "`lambda n: …`, of one number")
                for name in own:
                    self.not_shadowed(node, name)
                    if name in self.states:
                        self.complain(node, f"`{name}` as a name", "another name: this is the state's")
                outside, self.names = (self.names, self.given), {**self.names, **own}
                self.given = self.given | set(own)
                self.wants(returned, body)
                self.names, self.given = outside
            case ast.Name(id=name) if name in self.file.home(name).functions and name not in self.names:
                return
            case ast.Attribute(value=ast.Name(id=spec), attr=name) if name in self._of(spec):
                return
            case _:
                self.complain(node, f"`{ast.unparse(node)}`", "a function of this file by its name, or `lambda n: …`")

    def own(self, node: ast.Call, home: SpecFile, name: str) -> Kind:
        """A function of this file, or of a spec that it is made of."""
        function = home.functions[name]
        wanted = {one.arg: home.kind_of_annotation(one.annotation) for one in function.args.args}
        takes = Signature([Parameter(one, Parameter.POSITIONAL_OR_KEYWORD) for one in wanted])
        self.complete(node, name, takes)
        for kind, value in zip(wanted.values(), node.args, strict=False):
            self.wants(kind, value)
        for keyword in node.keywords:
            self.wants(wanted.get(keyword.arg or "", UNKNOWN), keyword.value)
        return home.kind_of_annotation(function.returns)

    def of_map(self, node: ast.Call, kind: Kind, name: str) -> Kind:
        """A method of a Map: what is put into a Map of truth values is one."""
        if kind and not is_map(kind):
            self.complain(node, f"`.{name}(…)` of a value that is {kind}", "it of a `Map`")
        if is_pairs(kind) and name == "forget_from":
            self.complain(node, f"`.forget_from(…)` of {kind}", "`set` of each element, or `cleared()`")
        inner = value_of(kind)
        parameters = [*signature(MAP_WORDS[name]).parameters.values()][1:]
        if name == "set":
            given = ("first", "second", "value") if is_pairs(kind) else ("key", "value")
            parameters = [Parameter(one, Parameter.POSITIONAL_ONLY, annotation=one[0].upper()) for one in given]
        self.complete(node, name, Signature(parameters))
        for parameter, value in zip(parameters, node.args, strict=False):
            self.wants(inner if parameter.annotation == "V" else NUMBER, value)
        return kind


def states_rules(file: SpecFile, name: str) -> bool:
    """True if a function of this name may refuse: it states a rule, or calls a function of its file that does."""
    if name not in file.functions:
        return False
    used, looked_up = {name}, [name]
    while looked_up:
        found = set(loaded(file.functions[looked_up.pop()])) - used
        used |= found
        looked_up += found & file.functions.keys()
    return not used.isdisjoint(GUARDS)


def _in_any_case(nodes: Sequence[ast.expr]) -> Iterator[ast.Call]:
    """The calls in expressions that are run whatever other parts of these are."""
    pending: list[ast.AST] = [*nodes]
    while pending:
        match node := pending.pop():
            case ast.BoolOp(values=values):
                pending.append(values[0])
            case ast.IfExp(test=test):
                pending.append(test)
            case _:
                if isinstance(node, ast.Call):
                    yield node
                pending += ast.iter_child_nodes(node)


_ENDS_OTHERWISE = (ast.Raise, ast.Try, ast.While, ast.For, ast.With, ast.Match, ast.Pass, ast.AsyncFor, ast.AsyncWith)


def _is_foreign(last: ast.stmt) -> bool:
    """True if `vocabulary` complains of a function's last statement, so that the missing value is no news."""
    if isinstance(last, ast.Return) and last.value is None:
        return True
    shown = isinstance(last, ast.Expr) and isinstance(last.value, ast.Yield | ast.YieldFrom | ast.Await)
    return shown or isinstance(last, _ENDS_OTHERWISE)


def _shown(kind: Kind) -> str:
    """A kind in the words of a message."""
    return "a state" if is_state(kind) else kind


def _named_by(node: ast.AST) -> list[str]:
    """The names that a statement gives to a value."""
    return list(names_given(node)) if isinstance(node, ast.Assign | ast.AnnAssign) else []


def _positive(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value > 0


def _given(node: ast.Call) -> list[ast.expr]:
    return [*node.args, *(keyword.value for keyword in node.keywords)]


def _returned(of: object) -> Kind:
    return {"bool": BOOL, "int": NUMBER}.get(str(of), UNKNOWN)


def _either(one: Kind, other: Kind) -> Kind:
    """The kind of what is one of two values."""
    if one == other:
        return one
    return NUMBER if {one, other} == {BOOL, NUMBER} else UNKNOWN


def _grouped(node: ast.expr) -> str:
    """The text of a value, in parentheses where a comparison behind it would be read otherwise."""
    text = ast.unparse(node)
    return f"({text})" if isinstance(node, ast.IfExp | ast.Lambda) else text


def _ends(body: Sequence[ast.stmt]) -> bool:
    """True if every way through a body ends with a `return`."""
    match body[-1]:
        case ast.Return(value=value):
            return value is not None
        case ast.If(body=then, orelse=otherwise):
            return bool(otherwise) and _ends(then) and _ends(otherwise)
        case _:
            return False
