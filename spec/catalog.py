"""The specs by which traces are judged, by name, with all that their readers need.

A spec is found, not listed: every module of this package that ends with `ACTIONS` and `INVARIANTS` is one. What real
brokers do instead stands in the module of the same name in `deviations/`, if they do, and what is enabled when in the
one in `laws/`; users have all in one file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from functools import cache, cached_property
from importlib import import_module
from inspect import getdoc, signature
from pkgutil import iter_modules
from types import FunctionType, ModuleType
from typing import Any, get_args, get_origin, get_type_hints

from gapless.spec import __path__ as folder
from gapless.spec import deviations, language, laws
from gapless.spec.language import APPLIES, ASSUMED, Bound, Deviation, Map, Refused, Takeover, require, waived
from gapless.spec.reading.quantification import for_every_number

State = Any
"""A frozen dataclass of integers and Maps; each spec has its own."""

Step = Callable[..., State]
Holds = Callable[..., bool]
"""A property of a state, and of the numbers behind it, for each of which it is stated."""


@dataclass(frozen=True)
class Rule:
    """One rule that a spec states. A *need* is a `require` of a step; an *invariant* holds in every state.

    `otherwise` says what goes wrong without it, and for a need, in which step.
    """

    id: str  # SPEC/RULE: what users and code know it by
    kind: str
    because: str
    otherwise: Mapping[str, str]
    source: str

    @property
    def spec(self) -> str:
        """The spec that states it."""
        return self.id.partition("/")[0]


@dataclass(frozen=True)
class Spec:
    """One spec module, seen as data: actions and their arguments by name, fields, deviations.

    `deviating` has what real brokers do instead; where there is none, a spec may state its deviations itself. `laws`
    has its enabledness laws, in addition to those in its own file.
    """

    module: ModuleType
    deviating: ModuleType | None = None
    laws: ModuleType | None = None

    @property
    def name(self) -> str:
        """The module's name, as it stands in events and rule ids."""
        return self.module.__name__.rpartition(".")[2]

    @property
    def called(self) -> str:
        """The name by which users call it."""
        return self.name

    @property
    def source(self) -> str:
        """The citation of its rules that cite nothing else."""
        return "docs/design.md#specs"

    def source_of(self, step: Step) -> str:
        """The page or file that the rules of a step cite."""
        return _source(step) or self.source

    @property
    def initial(self) -> State:
        """The state before the first step."""
        return self.module.INITIAL

    @cached_property
    def starts(self) -> Mapping[str, Callable[..., State]]:
        """The functions of `INITIALS` by name: each outcome on `initial` is an initial state, if there are any."""
        return {start.__name__: start for start in getattr(self.module, "INITIALS", ())}

    @cached_property
    def actions(self) -> Mapping[str, Callable[..., State]]:
        """Every action by name, in the order of `ACTIONS`; an event's code is its index here.

        A spec that says what holds at rest has one more, `end`, the last: it claims that the system is at rest.
        """
        claim = [_end(self.at_rest)] if self.at_rest else []
        return {action.__name__: action for action in (*self.module.ACTIONS, *claim)}

    @property
    def bound(self) -> Bound | None:
        """The bound within which it is explored, if it states one."""
        found: Bound | None = getattr(self.module, "BOUND", None)
        return found

    @property
    def at_rest(self) -> tuple[Holds, ...]:
        """The properties of a system at rest, for every number: nothing is pending, and every slot is free."""
        return tuple(getattr(self.module, "AT_REST", ()))

    @cached_property
    def codes(self) -> Mapping[str, int]:
        """The code of every action."""
        return {name: code for code, name in enumerate(self.actions)}

    @cached_property
    def deviations(self) -> tuple[Deviation[Any], ...]:
        """The steps that real brokers take and the design forbids."""
        return self._instead("DEVIATIONS")

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Every action, and the step of every deviation."""
        return (*self.actions.values(), *(deviation.step for deviation in self.deviations))

    @cached_property
    def takeovers(self) -> tuple[Takeover[Any], ...]:
        """The takeovers, by which a reader continues behind a broken rule."""
        return self._instead("TAKEOVERS")

    def taken_over(self, state: State, action: str, args: Mapping[str, int], rule: str) -> State | None:
        """The state that the broker claims after an action that a rule refused; None if it is unknown."""
        for takeover in self.takeovers:
            if takeover.rule == rule and takeover.instead_of is self.actions[action]:
                with suppress(Refused):
                    return takeover.step(state, *(args[name] for name in self.parameters[action]))
        return None

    def __reduce__(self) -> tuple[Callable[[str], Spec], tuple[str]]:
        """So that it travels to workers by its name. Raises TypeError where that is the name of another."""
        if SPECS.get(self.name) is not self:
            raise TypeError(f"{self.name} is no spec of ours as it stands: it cannot travel")
        return _ours, (self.name,)

    def _instead(self, name: str) -> tuple[Any, ...]:
        return tuple(getattr(self.deviating or self.module, name, ()))

    @property
    def files(self) -> tuple[ModuleType, ...]:
        """The modules that state it, and those of the specs that it is made of.

        Pytest gives modules of its own to those whose asserts it rewrites, under names that are no identifiers.
        """
        named = vars(self.module).items()
        made_of = {value for name, value in named if isinstance(value, ModuleType) and name.isidentifier()}
        own = (one for one in (self.module, self.deviating, self.laws) if one is not None)
        return (*own, *sorted(made_of, key=lambda module: module.__name__))

    @cached_property
    def rules(self) -> Mapping[str, Rule]:
        """All rules that it states, by id: what its steps need, its deviations, invariants and step properties."""
        found: dict[str, Rule] = {}

        def state(name: str, kind: str, because: str, otherwise: Mapping[str, str], source: str) -> None:
            found.setdefault(f"{self.name}/{name}", Rule(f"{self.name}/{name}", kind, because, otherwise, source))

        every = {name: list(needs(action)) for name, action in self.actions.items()}
        for name, action in self.actions.items():
            for need in every[name]:
                if need.rule not in (ASSUMED, APPLIES):
                    otherwise = {
                        a: n.otherwise for a, some in every.items() for n in reversed(some) if n.rule == need.rule
                    }
                    state(need.rule, f"need of {name}", need.because, otherwise, self.source_of(action))
        for deviation in self.deviations:
            under = " and ".join(sorted(deviation.profiles))
            kind = f"deviation from {deviation.instead_of.__name__}, an anomaly under {under}"
            otherwise = {"": "it is counted; any other profile refuses it as the action does"}
            state(id_of(deviation.step.__name__), kind, sentence_of(deviation.step), otherwise, deviation.seen)
        stated = (self.invariants(), self.step_properties(), (*self.enabled(), *self.enabled(weak=True)))
        for kind, group in zip(("invariant", "step property", "enabled"), stated, strict=True):
            for holds in group:
                state(id_of(holds.__name__), kind, sentence_of(holds), {"": _otherwise(holds)}, self.source)
        return found

    @cached_property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions about the environment, by the sentences of `assume`: every proof builds on them."""
        return tuple(dict.fromkeys(sentence for step in self.steps for sentence in assumed(step)))

    def rule_of(self, stated: Callable[..., Any]) -> Rule:
        """The rule that a deviation, an invariant or a step property is."""
        return self.rules[f"{self.name}/{id_of(stated.__name__)}"]

    @cached_property
    def parameters(self) -> Mapping[str, tuple[str, ...]]:
        """The arguments of every action, the state left out."""
        return {name: tuple(signature(action).parameters)[1:] for name, action in self.actions.items()}

    @cached_property
    def flags(self) -> Mapping[str, frozenset[str]]:
        """The arguments of every action that are true or false: 1 or 0 in an event, and nothing else."""
        hints = {name: get_type_hints(action) for name, action in self.actions.items()}
        return {
            name: frozenset(argument for argument in arguments if hints[name].get(argument) is bool)
            for name, arguments in self.parameters.items()
        }

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """Every argument name of the spec once; a column of events each."""
        return tuple(dict.fromkeys(name for names in self.parameters.values() for name in names))

    @cached_property
    def scalars(self) -> tuple[str, ...]:
        """The state's fields that are integers."""
        return tuple(f.name for f in fields(self.initial) if not isinstance(getattr(self.initial, f.name), Map))

    @cached_property
    def maps(self) -> tuple[str, ...]:
        """The state's fields that are Maps."""
        return tuple(f.name for f in fields(self.initial) if isinstance(getattr(self.initial, f.name), Map))

    @cached_property
    def key_types(self) -> frozenset[Any]:
        """The types of which the state's Maps have their keys."""
        hints = get_type_hints(type(self.initial)).values()
        return frozenset(key for hint in hints if get_origin(hint) is Map for key in get_args(hint)[:-1])

    def invariants(self, *, weak: bool = False) -> tuple[Callable[..., bool], ...]:
        """The invariants; with `weak`, those that survive deviations."""
        given_up = self._instead("GIVEN_UP") if weak else ()
        return tuple(holds for holds in self.module.INVARIANTS if holds not in given_up)

    def step_properties(self, *, weak: bool = False) -> tuple[Callable[..., bool], ...]:
        """The properties of every step; with `weak`, of deviations too."""
        own = tuple(getattr(self.module, "STEP_PROPERTIES", ()))
        if not weak:
            return own
        kept = (holds for holds in own if holds not in self._instead("GIVEN_UP"))
        return (*kept, *(self._instead("STEP_PROPERTIES") if self.deviating else ()))

    def enabled(self, *, weak: bool = False) -> tuple[Holds, ...]:
        """Enabledness laws: properties of one state in which all invariants hold. They are shown, never assumed.

        With `weak`, those that need only the weaker invariants: of the design, and those in the file of the deviations.
        """
        weaker = (self.laws, "ENABLED_AFTER_DEVIATIONS"), (self.deviating, "ENABLED")
        whose = weaker if weak else ((self.module, "ENABLED"), (self.laws, "ENABLED"))
        return tuple(holds for module, name in whose for holds in getattr(module, name, ()))

    def allowed(self, profile: str) -> tuple[Deviation[Any], ...]:
        """The deviations that `profile` counts as anomalies."""
        return tuple(d for d in self.deviations if profile in d.profiles)

    def stand_ins(self, action: str, profile: str) -> tuple[Deviation[Any], ...]:
        """The deviations that `profile` allows in place of an action, in the order in which they are tried."""
        return tuple(d for d in self.allowed(profile) if d.instead_of is self.actions[action])

    def step(self, state: State, action: str, args: Mapping[str, int], profile: str) -> tuple[State, str | None]:
        """The next state, and the deviation that was needed to get there. Raises Refused."""
        wanted = [args[name] for name in self.parameters[action]]
        try:
            return self.actions[action](state, *wanted), None
        except Refused:
            for deviation in self.stand_ins(action, profile):
                try:
                    return deviation.step(state, *wanted), deviation.step.__name__
                except Refused:
                    continue
            raise


def spec_from(module: ModuleType, deviating: ModuleType | None = None, laws: ModuleType | None = None) -> Spec:
    """The spec that a module states, with its deviations and laws. Raises ValueError where it states none."""
    if missing := [name for name in ("INITIAL", *STATED) if not hasattr(module, name)]:
        raise ValueError(f"{module.__name__} is no spec: it has no {' and no '.join(missing)}")
    if hasattr(module, "AT_REST") and END in (action.__name__ for action in module.ACTIONS):
        raise ValueError(f"{module.__name__} has an action {END}, and AT_REST, of which that action is made: rename it")
    return Spec(module, deviating, laws)


STATED = ("ACTIONS", "INVARIANTS")
TEXT = "__text__"
"""The name under which the module of a spec that a user brings keeps the text that it was made of."""

END = "end"
"""The action that claims rest, and changes nothing: every `AT_REST` property of the spec must be true."""


def _found() -> Iterator[Spec]:
    deviating, lawful = _modules(deviations), _modules(laws)
    for name in (module.name for module in iter_modules(folder) if not module.ispkg):
        module = import_module(f"gapless.spec.{name}")
        if all(hasattr(module, stated) for stated in STATED):
            yield spec_from(module, deviating.get(name), lawful.get(name))


def _modules(package: ModuleType) -> dict[str, ModuleType]:
    """The modules of a package, by name."""
    return {one.name: import_module(f"{package.__name__}.{one.name}") for one in iter_modules(package.__path__)}


def _ours(name: str) -> Spec:
    return SPECS[name]


SPECS: Mapping[str, Spec] = {spec.name: spec for spec in _found()}
STRICT = "strict"  # the profile of the design itself, which allows no broker's deviations
_DEVIATIONS = tuple(deviation for spec in SPECS.values() for deviation in spec.deviations)
PROFILES = tuple(dict.fromkeys((STRICT, *(profile for one in _DEVIATIONS for profile in sorted(one.profiles)))))
"""Whose deviations a check may allow: no broker's, or those of one that a deviation names."""


AnySpec = str | Spec
"""A spec: itself, or one of ours by its name."""


def resolve_spec(spec: AnySpec) -> Spec:
    """The spec itself. Raises KeyError where none of ours has the name."""
    return SPECS[spec] if isinstance(spec, str) else spec


def rule(name: str) -> Rule:
    """The rule with this id. Raises LookupError where there is none: ask when your module is imported."""
    spec = name.partition("/")[0]
    found = SPECS[spec].rules.get(name) if spec in SPECS else None
    if found is None:
        raise LookupError(f"no spec states a rule {name!r} (gapless rules lists them)")
    return found


@contextmanager
def waiving(spec: str, rules: frozenset[str]) -> Iterator[None]:
    """Suspend some of this spec's rules within the context."""
    token = waived.set(_of_spec(spec, rules))
    try:
        yield
    finally:
        waived.reset(token)


@cache
def _of_spec(spec: str, rules: frozenset[str]) -> frozenset[str]:
    return frozenset(name for whose, _, name in (rule.partition("/") for rule in rules) if whose == spec)


# -- at rest -------------------------------------------------------------------------------------------------------

def _end(at_rest: Sequence[Holds]) -> Step:
    """The action that AT_REST makes: each property is a need, for every number that it speaks of.

    Its name and docstring are the need's sentences.
    """

    def end(s: State) -> State:
        for holds, need in zip(at_rest, stated, strict=True):
            require(for_every_number(holds, s), need.rule, because=need.because, otherwise=need.otherwise)
        return s

    end.__doc__ = "The system has come to rest. What follows is its next beginning.\n\nSource: docs/design.md#at-rest."
    end.__dict__["at_rest"] = tuple(at_rest)
    stated = tuple(claimed(holds) for holds in at_rest)
    return end


def _at_rest(step: Step) -> tuple[Holds, ...]:
    """The properties that an action `end` is made of; none of any other."""
    found: tuple[Holds, ...] = step.__dict__.get("at_rest", ())
    return found


def claimed(holds: Holds) -> RequireSite:
    """The requirement that a property of rest comes to."""
    return RequireSite(id_of(holds.__name__), sentence_of(holds), _otherwise(holds))


# -- rules, as they stand in the text ------------------------------------------------------------------------------


@dataclass(frozen=True)
class RequireSite:
    """One `require` of a step, as it stands in the text; or what has no rule, but `ASSUMED` or `APPLIES`."""

    rule: str
    because: str
    otherwise: str = ""


def sentence_of(function: Callable[..., Any]) -> str:
    """The sentence that is a function's name."""
    return function.__name__.replace("_", " ")


def _source(step: Step) -> str:
    """The citation behind *Source:* in a step's docstring; empty if there is none."""
    match = re.search(r"Source:\s*(.*)", getdoc(step) or "", re.DOTALL)
    return " ".join(match[1].split()).rstrip(".") if match else ""


def id_of(name: str) -> str:
    """The id of what is stated by a function's name: hyphens, and no leading article."""
    words = name.split("_")
    return "-".join(words[1:] if words[0] in ("the", "a", "an") else words)


def _otherwise(holds: Callable[..., Any]) -> str:
    """The consequence of a broken property: its docstring, if that begins with *Otherwise*."""
    begin, _, text = (getdoc(holds) or "").partition(" ")
    return text.rstrip(".") if begin.rstrip(",") == "Otherwise" else ""


def needs(step: Step) -> Iterator[RequireSite]:
    """The requirements of a step and of the functions that it calls, in the order of the text."""
    yield from map(claimed, _at_rest(step))
    for function in made_of(step):
        for call in _calls(function):
            texts = {
                keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords if keyword.arg in SENTENCES
            }
            match call:
                case ast.Call(func=ast.Name(id="require"), args=[_, name]):
                    yield RequireSite(ast.literal_eval(name), **texts)
                case ast.Call(func=ast.Name(id="assume")):
                    yield RequireSite(ASSUMED, **texts)
                case ast.Call(func=ast.Name(id="applies"), args=[condition]):
                    yield RequireSite(APPLIES, ast.unparse(condition))


def assumed(step: Step) -> tuple[str, ...]:
    """The assumptions of a step about its environment: the sentences of its `assume`s."""
    return tuple(dict.fromkeys(need.because for need in needs(step) if need.rule == ASSUMED))


SENTENCES = ("because", "otherwise")


def made_of(step: Step) -> Iterator[Step]:
    """The functions of specs that a step is made of, each once: itself first, or what holds at rest."""
    found, waiting = dict[Step, None](), list(_at_rest(step) or (step,))
    while waiting:
        function = waiting.pop(0)
        if function not in found:
            found[function] = None
            waiting += filter(None, (_called(call.func, function.__globals__) for call in _calls(function)))
    yield from found


def _called(name: ast.expr, names: Mapping[str, Any]) -> Step | None:
    """The function of a spec that is called by this name; words of the language are none."""
    match name:
        case ast.Name(id=own):
            called = names.get(own)
        case ast.Attribute(value=ast.Name(id=spec), attr=own):
            called = getattr(names.get(spec), own, None)
        case _:
            return None
    return called if isinstance(called, FunctionType) and called.__module__ != language.__name__ else None


def _calls(function: Step) -> list[ast.Call]:
    """The calls in a function, in the order of the text."""
    return _calls_of(_text(function.__globals__), function.__name__)


def text_of(module: ModuleType) -> str:
    """The text that a module was made of; what is in its file by now may be another."""
    return _text(vars(module))


def has_text(module: ModuleType) -> bool:
    """True if the module was made of a text, and not by a program."""
    return TEXT in vars(module) or getattr(module, "__file__", None) is not None


def _text(names: Mapping[str, Any]) -> str:
    given: str | None = names.get(TEXT)
    if given is not None:
        return given
    content: bytes = names["__spec__"].loader.get_data(names["__file__"])  # the package may be an archive
    return content.decode()


@cache
def _calls_of(text: str, name: str) -> list[ast.Call]:
    """The calls in a function of a file."""
    calls = (node for node in ast.walk(_functions_of(text)[name]) if isinstance(node, ast.Call))
    return sorted(calls, key=lambda call: (call.lineno, call.col_offset))


@cache
def _functions_of(text: str) -> Mapping[str, ast.FunctionDef]:
    """The functions of a file."""
    return {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
