"""The claims of a spec file: what happens in the end, as `Claim(…)` in the tuple `CLAIMS`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from itertools import chain

from gapless.spec.reading.calls import (
    NONE,
    first_of,
    is_call,
    members_of,
    parts_of,
    shown,
    step_in,
    strange_part,
    text_in,
)
from gapless.spec.reading.complaints import Complaint, unknown
from gapless.spec.reading.declarations import BOOL, NUMBER, Kind, SpecFile, is_state

A_CLAIM = '`Claim("…", otherwise="…", pending=…, done=…, fair={step: "why"})`'
A_HELPFUL = "`Helpful(step, when=…, args={…})`"
PARTS = ("sentence", "otherwise", "done", "pending", "fair", "disturbances", "rank", "helpful")
OF_A_HELPFUL = ("step", "when", "args")


def claims(file: SpecFile) -> Iterator[Complaint]:
    """The faults of `CLAIMS`; of each claim, the first."""
    members, complaints = members_of(file, "CLAIMS", A_CLAIM)
    yield from complaints
    for member in members:
        yield from first_of(_of_claim(file, member))
    sentences = [text_in(parts_of(member, PARTS).get("sentence", NONE)) for member in members]
    for at, (member, sentence) in enumerate(zip(members, sentences, strict=True)):
        if sentence and sentence in sentences[:at]:
            yield Complaint(member.lineno, f"the claim {sentence!r} a second time", "another sentence")


def _of_claim(file: SpecFile, member: ast.expr) -> Iterator[Complaint]:
    """The faults of one claim."""
    parts, line = parts_of(member, PARTS), member.lineno
    if not is_call(member, "Claim"):
        yield Complaint(line, f"{shown(member)} in `CLAIMS`", A_CLAIM)
        return
    yield from strange_part("Claim", parts, PARTS, line, A_CLAIM)
    for name in ("sentence", "otherwise"):
        if not text_in(parts.get(name, NONE)).strip():
            yield Complaint(line, f"`Claim(…)` without a text for `{name}`", A_CLAIM)
    if "done" not in parts:
        yield Complaint(line, "`Claim(…)` without `done=`", A_CLAIM)
    for name in ("done", "pending"):
        if name in parts:
            yield from _function(file, parts[name], f"{name}=", BOOL)
    for name in ("fair", "disturbances"):
        if name in parts:
            yield from _reasons(file, name, parts[name])
    yield from _number(file, member)
    yield from _for_a_proof(file, member, parts)


def _function(
    file: SpecFile, value: ast.expr, place: str, returns: Kind, *, alone: bool = False
) -> Iterator[Complaint]:
    """The faults of a function of a claim: of the state and at most one number, or, if it may, of that alone."""
    wanted = "bool" if returns == BOOL else "int"
    name, word = ast.unparse(value).splitlines()[0], f"`{place}{ast.unparse(value).splitlines()[0]}` in a claim"
    head = f"`def {name if name.isidentifier() else 'it'}(s: State) -> {wanted}`, or with one number behind the state"
    function = file.functions.get(name)
    if function is None:
        yield unknown(value.lineno, word, name, file.functions, f"a function of this file, by its name: {head}")
        return
    kinds = [file.kind_of_annotation(one.annotation) for one in function.args.args]
    states = [is_state(kind) for kind in kinds]
    may_take = ([True], [True, False], *([[False]] if alone else []))
    if states not in may_take or file.kind_of_annotation(function.returns) != returns:
        yield Complaint(value.lineno, word, head)


def _reasons(file: SpecFile, part: str, value: ast.expr) -> Iterator[Complaint]:
    """The faults of a mapping of steps to reasons."""
    form = f'`{part}={{step: "why"}}`'
    if not isinstance(value, ast.Dict):
        yield Complaint(value.lineno, f"`{part}={ast.unparse(value)}` in a claim", form)
        return
    for key, reason in zip(value.keys, value.values, strict=True):
        yield from step_in(file, key or NONE, part, value.lineno)
        if not text_in(reason).strip():
            yield Complaint(reason.lineno, f"{shown(reason)} in `{part}`", f"the reason, as a text: {form}")


def _functions(member: ast.expr) -> Iterator[ast.expr]:
    """The parts of a claim that are functions, or stand in their place."""
    parts = parts_of(member, PARTS)
    yield from (parts[name] for name in ("pending", "done", "rank") if name in parts)
    helpful = parts.get("helpful", NONE)
    for one in helpful.elts if isinstance(helpful, ast.Tuple) else ():
        more = parts_of(one, OF_A_HELPFUL)
        yield from (more[name] for name in ("when",) if name in more)
        args = more.get("args", NONE)
        yield from args.values if isinstance(args, ast.Dict) else ()


def _number(file: SpecFile, member: ast.expr) -> Iterator[Complaint]:
    """The complaint about functions of one claim that speak of two numbers."""
    named: dict[str, str] = {}
    for value in _functions(member):
        function = file.functions.get(ast.unparse(value))
        for one in _numbers(file, function):
            named.setdefault(one, function.name if function else "")
    if len(named) > 1:
        (first, a), (second, b), *_ = named.items()
        word = f"`{first}` of `{a}` and `{second}` of `{b}` in one claim"
        yield Complaint(member.lineno, word, "one name for both: a claim speaks of one number")


def number_of(file: SpecFile, member: ast.expr) -> str:
    """The name of the number that a claim speaks of; empty where it speaks of none."""
    functions = (file.functions.get(ast.unparse(value)) for value in _functions(member))
    return next((number for one in functions for number in _numbers(file, one)), "")


def _numbers(file: SpecFile, function: ast.FunctionDef | None) -> list[str]:
    """The parameters of a function that are no state."""
    parameters = function.args.args if function else ()
    return [one.arg for one in parameters if not is_state(file.kind_of_annotation(one.annotation))]


def _for_a_proof(file: SpecFile, member: ast.expr, parts: Mapping[str, ast.expr]) -> Iterator[Complaint]:
    """The faults of a rank and its helpful steps."""
    if ("rank" in parts) != ("helpful" in parts):
        given, missing = ("rank", "helpful") if "rank" in parts else ("helpful", "rank")
        yield Complaint(member.lineno, f"`{given}=` without `{missing}=`", "both: a proof by rank needs the two")
    if "rank" in parts:
        yield from _function(file, parts["rank"], "rank=", NUMBER)
    helpful = parts.get("helpful", NONE)
    if "helpful" in parts and not (isinstance(helpful, ast.Tuple) and helpful.elts):
        yield Complaint(helpful.lineno, f"`helpful={ast.unparse(helpful)}`", f"a tuple: `({A_HELPFUL.strip('`')},)`")
    for one in helpful.elts if isinstance(helpful, ast.Tuple) else ():
        yield from _of_helpful(file, one, parts, number_of(file, member))


def _of_helpful(file: SpecFile, one: ast.expr, claim: Mapping[str, ast.expr], number: str) -> Iterator[Complaint]:
    """The faults of one helpful step."""
    parts = parts_of(one, OF_A_HELPFUL)
    if not is_call(one, "Helpful") or "step" not in parts or "when" not in parts:
        yield Complaint(one.lineno, f"{shown(one)} in `helpful`", A_HELPFUL)
        return
    strange = strange_part("Helpful", parts, OF_A_HELPFUL, one.lineno, A_HELPFUL)
    if wrong := [*first_of(chain(strange, step_in(file, parts["step"], "helpful", one.lineno)))]:
        yield from wrong
        return
    step, fair = ast.unparse(parts["step"]), claim.get("fair", NONE)
    if step not in (map(ast.unparse, filter(None, fair.keys)) if isinstance(fair, ast.Dict) else ()):
        yield Complaint(one.lineno, f"`{step}` in `helpful` and not in `fair`", f'`{step}: "why"` into `fair`')
    yield from _function(file, parts["when"], "when=", BOOL)
    yield from _arguments(file, one, step, parts.get("args", ast.Dict([], [])), number)


def _arguments(file: SpecFile, one: ast.expr, step: str, args: ast.expr, number: str) -> Iterator[Complaint]:
    """The faults of the arguments of a helpful step."""
    names = [one.arg for one in file.functions[step].args.args[1:]]
    if not isinstance(args, ast.Dict):
        yield Complaint(args.lineno, f"`args={ast.unparse(args)}`", '`args={"argument": function}`')
        return
    given = {text_in(key or NONE): value for key, value in zip(args.keys, args.values, strict=True)}
    for name, value in given.items():
        if name not in names:
            others = f"an argument of `{step}`: {', '.join(names) or 'it has none'}"
            yield unknown(args.lineno, f"`{name}` in the `args` of `{step}`", name, names, others)
        yield from _function(file, value, f"{name}: ", NUMBER, alone=True)
    if missing := [name for name in names if name not in given and name != number]:
        word = f"`Helpful({step}, …)` without its argument `{missing[0]}`"
        yield Complaint(one.lineno, word, f'`args={{"{missing[0]}": function}}`')
