"""The reference: what code says of itself, as pages. Rules, steps, the columns of events, JSON Schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from gapless.spec.catalog import SPECS, Rule, Spec
from gapless.traces.events.event import Origin
from gapless.traces.events.schema import Event
from gapless.traces.rules import established, rules
from gapless.traces.schemas import SCHEMAS
from gapless.traces.steps import StepTold, steps_of

FOLDER = "reference"
A_PAGE = re.compile(r"(?<![\w/.-])(?:docs|spec|traces|properties)/[\w./-]+\.md(?:#[\w-]+)?")
"""A citation, which is a link on these pages."""

SAYS = {
    "report": "What `gapless check --json` writes.",
    "events": "A line of a file of events, its header or an event. `--spec FILE` adds those of a spec of yours.",
    "client": "A line of a client log.",
}


def pages() -> dict[str, str]:
    """Every page of the reference by its name, but for the command line's."""
    return {
        f"{FOLDER}/rules.md": "\n".join(_rules()),
        f"{FOLDER}/steps.md": "\n".join(_steps()),
        f"{FOLDER}/events.md": "\n".join(_events()),
        **{f"{FOLDER}/schema-{name}.md": "\n".join(_schema(name)) for name in SCHEMAS},
    }


def linked(text: str) -> str:
    """A text of ours in which citations are links."""
    return A_PAGE.sub(lambda found: f"[{found[0]}](../{found[0]})", text)


# -- rules -----------------------------------------------------------------------------------------------------------


def _rules() -> Iterator[str]:
    yield "# Rules\n"
    yield (
        "What is held against a recording, by spec, and what goes wrong in a broker that breaks it. `--only` and "
        "`--ignore` take these ids, and the name of a spec for all of its rules; no rewording changes an id. "
        "`gapless rules --spec FILE` lists those of a spec of yours.\n"
    )
    for spec, found in groupby(rules(), key=lambda rule: rule.spec):
        yield f"## {spec}\n"
        for rule in found:
            yield from _rule(rule)


def _rule(rule: Rule) -> Iterator[str]:
    otherwise = "; ".join(dict.fromkeys(rule.otherwise.values()))
    told = {
        "What it is": rule.kind,
        "Otherwise": linked(otherwise),
        "Established by": established(rule),
        "Source": linked(rule.source),
    }
    yield f'<a id="{rule.id}"></a>**`{rule.id}`**: {linked(rule.because)}\n'  # no heading: there are too many
    yield from (f"- {name}: {says}" for name, says in told.items())
    yield ""


# -- steps -----------------------------------------------------------------------------------------------------------


def _steps() -> Iterator[str]:
    yield "# Steps\n"
    yield (
        "What a recorder writes: the steps of every spec, their arguments with their units, and what each needs. The "
        "event in which one stands has [these columns](events.md). `gapless steps FILE` prints the steps of a spec of "
        "yours.\n"
    )
    for spec in SPECS.values():
        yield from _steps_of(spec)


def _steps_of(spec: Spec) -> Iterator[str]:
    told = tuple(steps_of(spec))
    yield f"## {spec.name}\n"
    for step in told:
        yield from _step(spec, step)
    types = {kind: says for step in told for kind, says in step.types.items()}
    if types:
        yield from _table(("type", "what it is"), ((f"`{kind}`", f"a number: {says}") for kind, says in types.items()))


def _step(spec: Spec, step: StepTold) -> Iterator[str]:
    yield f"### `{step.name}({', '.join(one.name for one in step.arguments)})`\n"
    yield f"{linked(step.says)}\n"
    if step.arguments:
        rows = ((f"`{one.name}`", f"`{one.kind}`", one.meaning) for one in step.arguments)
        yield from _table((f"argument of {spec.name}.{step.name}", "type", "meaning"), rows)
    known = {rule.id for rule in rules()}  # but for what a composed spec always meets
    for rule, because in step.needs:
        named = f"[`{rule}`](rules.md#{rule})" if rule in known else f"`{rule}`"
        yield f"- needs: {because} ({named})" if rule else f"- assumes: {because}"
    yield ""


# -- events and schemas ----------------------------------------------------------------------------------------------


def _events() -> Iterator[str]:
    yield "# Columns of an event\n"
    yield (
        "A file of events is NDJSON, plain or compressed, or Parquet; both have the same columns. What they mean, and "
        "how a recorder comes by them, is told [at length](../traces/README.md).\n"
    )
    fields = Event.model_fields.items()
    rows = ((f"`{name}`", "yes" if one.is_required() else "no", linked(one.description or "")) for name, one in fields)
    yield from _table(("column", "required", "what it holds"), rows)
    yield (
        "The first line of NDJSON, or the metadata of a Parquet file, says which version of this schema it is; it may "
        f"say {' and '.join(f'`{name}`' for name in Origin.__dataclass_fields__)}, too.\n"
    )


def _schema(name: str) -> Iterator[str]:
    yield f"# JSON Schema: {name}\n"
    yield f"{SAYS[name]} `gapless schema {name}` prints it.\n"
    yield "```json"
    yield json.dumps(SCHEMAS[name](SPECS), indent=1, ensure_ascii=False)
    yield "```\n"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    for row in (head, ("---",) * len(head), *rows):
        yield f"| {' | '.join(_cell(cell) for cell in row)} |"
    yield ""


def _cell(text: str) -> str:
    return text.replace("|", r"\|")
