"""Pages that are made from the code: rules, the Python interface, steps, columns of events, JSON Schemas."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from itertools import groupby
from typing import Any

from gapless.spec.catalog import SPECS, Rule, Spec
from gapless.traces.events.event import Origin
from gapless.traces.events.schema import Event
from gapless.traces.rules import established, rules
from gapless.traces.schemas import SCHEMAS
from gapless.traces.steps import StepDescription, steps_of
from manual.navigation import toctree
from manual.staging import ROOT

FOLDER = "reference"
WIDTH = 100  # letters of a signature on one line
BETWEEN_ARGUMENTS = re.compile(r"\s+·\s+(?=`)")
HEADING = re.compile(r"^# (.+)$", re.MULTILINE)
INTERFACE = {
    "gapless": ("check", "assert_conforms", "machine_for", "Recorder", "Store"),
    "gapless.coordinator": ("Coordinator", "CoordinatorSettings", "CoordinatorClient", "connect_client"),
}
"""The names of the Python interface that have a section, by the module from which they are imported."""

OF_RULES = """The rules by which recordings are judged, by spec, with the consequence of breaking each. `--only` and
`--ignore` take these ids, and the name of a spec for all of its rules; an id never changes. `gapless rules queue`
prints those of one spec, `gapless rules --spec FILE` those of a spec of yours. The search of this site finds ids and
sentences.
"""
OF_THE_INTERFACE = """Signatures and meaning, made from the code. `gapless.store` and `gapless.coordinator` have more
names, with examples.
"""

A_PAGE = re.compile(r"(?<![\w/.-])((?:docs|spec|traces|properties)/[\w./-]+\.md)(#[\w-]+)?((?:, #[\w-]+)*)")
"""A citation, which is a link on these pages."""

SAYS = {
    "report": "The output of `gapless check --json`.",
    "events": "A line of a file of events, its header or an event. `--spec FILE` adds those of a spec of yours.",
    "client": "A line of a client log.",
}


def pages() -> dict[str, str]:
    """Every page of the reference by its name, but for the command line's."""
    return {
        **_rules(),
        f"{FOLDER}/api.md": "\n".join(_interface()),
        f"{FOLDER}/steps.md": "\n".join(_steps()),
        f"{FOLDER}/events.md": "\n".join(_events()),
        **{f"{FOLDER}/schema-{name}.md": "\n".join(_schema(name)) for name in SCHEMAS},
    }


def linked(text: str, up: str = "..") -> str:
    """A text of ours in which citations are links, with the titles of pages. `up`: from the page to the root."""

    def link(found: re.Match[str]) -> str:
        """A citation and the further anchors behind it."""
        page, anchor, more = found[1], found[2] or "", found[3]
        others = "".join(f", [{name}]({up}/{page}{name})" for name in more.split(", ")[1:])
        return f"[{_title(page)}]({up}/{page}{anchor}){others}"

    return A_PAGE.sub(link, text)


@cache
def _title(page: str) -> str:
    """The first heading of a page of the repository; its path, where it is none."""
    path = ROOT / page
    found = HEADING.search(path.read_text(encoding="utf-8")) if path.is_file() else None
    return found[1] if found else page


# -- rules -----------------------------------------------------------------------------------------------------------


def _rules() -> dict[str, str]:
    """A page for each spec, and one that lists these."""
    by_spec = {spec: tuple(found) for spec, found in groupby(rules(), key=lambda rule: rule.spec)}
    listed = [
        (f"[{spec}](rules/{spec}.md)", f"{len(found)}", linked(_sentence_of(spec))) for spec, found in by_spec.items()
    ]
    first = [
        "# Rules\n",
        OF_RULES,
        *_table(("spec", "rules", "subject"), listed),
        toctree(f"rules/{spec}" for spec in by_spec),
    ]
    pages = {f"{FOLDER}/rules/{spec}.md": "\n".join(_rules_of(spec, found)) for spec, found in by_spec.items()}
    return {f"{FOLDER}/rules.md": "\n".join(first), **pages}


def _sentence_of(spec: str) -> str:
    """The first sentence of a spec's own description."""
    text = inspect.getdoc(SPECS[spec].module) if spec in SPECS else ""
    return " ".join((text or "").split("\n\n")[0].split())


def _rules_of(spec: str, found: Iterable[Rule]) -> Iterator[str]:
    yield f"# Rules of {spec}\n"
    for rule in found:
        yield from _rule(rule)


def _rule(rule: Rule) -> Iterator[str]:
    up = "../.."
    otherwise = "; ".join(dict.fromkeys(rule.otherwise.values()))
    facts = {
        "Kind": rule.kind,
        "Consequence": linked(otherwise, up),
        "Established by": established(rule),
        "Source": linked(rule.source, up),
    }
    yield f'<a id="{rule.id}"></a>\n\n## `{rule.id}`\n'
    yield f"{linked(rule.because, up)}\n"
    yield from (f"- {name}: {says}" for name, says in facts.items())
    yield ""


# -- the Python interface --------------------------------------------------------------------------------------------


def _interface() -> Iterator[str]:
    yield "# Python interface\n"
    yield OF_THE_INTERFACE
    for module, names in INTERFACE.items():
        for name in names:
            yield from _definition(f"{module}.{name}", getattr(import_module(module), name))


def _definition(name: str, defined: Any) -> Iterator[str]:
    """A function, or a class with its public methods."""
    yield f"## `{name}`\n"
    yield f"```python\n{_signature(name.rpartition('.')[2], defined)}\n```\n"
    yield f"{_described(defined)}\n"
    if inspect.isclass(defined):
        for method, function in inspect.getmembers(defined):
            if not method.startswith("_") and callable(function) and function.__doc__:
                yield f"### `{name.rpartition('.')[2]}.{method}`\n"
                yield f"```python\n{_signature(method, function)}\n```\n"
                yield f"{_described(function)}\n"


def _described(defined: Any) -> str:
    """The docstring; arguments that stand behind one another there are a list here."""
    return linked("\n\n".join(_listed(text) for text in (inspect.getdoc(defined) or "").split("\n\n")))


def _listed(paragraph: str) -> str:
    return BETWEEN_ARGUMENTS.sub("\n- ", f"- {paragraph}") if BETWEEN_ARGUMENTS.search(paragraph) else paragraph


def _signature(name: str, defined: Any) -> str:
    """A call, an argument on each line where one line has no room."""
    signature = inspect.signature(defined)
    text = f"{name}{signature}"
    if len(text) > WIDTH:
        _, _, returned = text.rpartition(") -> ")
        arguments = "".join(f"    {argument},\n" for argument in signature.parameters.values())
        text = f"{name}(\n{arguments})" + (f" -> {returned}" if ") -> " in text else "")
    return text.replace("'", "")


# -- steps -----------------------------------------------------------------------------------------------------------


def _steps() -> Iterator[str]:
    yield "# Steps\n"
    yield (
        "The steps that a recorder writes, by spec: their arguments with units, and their conditions. The "
        "event in which one stands has [these columns](events.md). `gapless steps FILE` prints the steps of a spec of "
        "yours.\n"
    )
    for spec in SPECS.values():
        yield from _steps_of(spec)


def _steps_of(spec: Spec) -> Iterator[str]:
    steps = tuple(steps_of(spec))
    yield f"## {spec.name}\n"
    for step in steps:
        yield from _step(spec, step)
    types = {kind: says for step in steps for kind, says in step.types.items()}
    if types:
        yield from _table(("type", "meaning"), ((f"`{kind}`", f"a number: {says}") for kind, says in types.items()))


def _step(spec: Spec, step: StepDescription) -> Iterator[str]:
    yield f"### `{step.name}({', '.join(one.name for one in step.arguments)})`\n"
    yield f"{linked(step.says)}\n"
    if step.arguments:
        rows = ((f"`{one.name}`", f"`{one.kind}`", one.meaning) for one in step.arguments)
        yield from _table((f"argument of {spec.name}.{step.name}", "type", "meaning"), rows)
    known = {rule.id for rule in rules()}  # but for what a composed spec always meets
    for rule, because in step.needs:
        named = f"[`{rule}`](rules/{rule.partition('/')[0]}.md#{rule})" if rule in known else f"`{rule}`"
        yield f"- needs: {because} ({named})" if rule else f"- assumes: {because}"
    yield ""


# -- events and schemas ----------------------------------------------------------------------------------------------


def _events() -> Iterator[str]:
    yield "# Columns of an event\n"
    yield (
        "A file of events is NDJSON, plain or compressed, or Parquet; both have the same columns. What they mean, and "
        "how a recorder comes by them, is described [at length](../traces/README.md).\n"
    )
    fields = Event.model_fields.items()
    rows = ((f"`{name}`", "yes" if one.is_required() else "no", linked(one.description or "")) for name, one in fields)
    yield from _table(("column", "required", "content"), rows)
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
