"""JSON Schemas of our inputs and outputs, made from the models and step tables of their code."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic.json_schema import models_json_schema

from gapless.spec.catalog import SPECS, Spec
from gapless.traces.events.event import NAME, OUTCOMES, VERSION, Origin
from gapless.traces.events.schema import Event
from gapless.traces.report.values import Report, ReportRow
from gapless.traces.sources import registry
from gapless.traces.sources.verbs import JsonSchema as Schema

DIALECT = "https://json-schema.org/draft/2020-12/schema"
INT64 = {"$ref": "#/$defs/int64"}
NUMBER = {"$ref": "#/$defs/number"}  # of an argument or a field of the state: true and false are 1 and 0


def report_schema(_specs: Mapping[str, Spec] = SPECS) -> Schema:
    """Build the schema of `gapless check --json`: the rows of each source are keys next to the others."""
    registry.sources()
    rows = sorted((row for row in ReportRow.__subclasses__() if row.__module__.startswith("gapless.")), key=_part)
    refs, schema = models_json_schema(
        [(Report, "validation"), *((row, "validation") for row in rows)], ref_template="#/$defs/{model}"
    )
    defs = schema["$defs"]
    whole = defs.pop(refs[Report, "validation"]["$ref"].rpartition("/")[2])
    defs.pop(ReportRow.__name__, None)
    del whole["properties"]["parts"]
    whole["properties"] |= {_part(row): {"type": "array", "items": refs[row, "validation"]} for row in rows}
    whole["additionalProperties"] = {"type": "array", "description": "rows of a source of another package"}
    return {"$schema": DIALECT, **whole, "title": "a report of gapless", "$defs": dict(sorted(defs.items()))}


def _part(row: type[ReportRow]) -> str:
    return row.part


def events_schema(specs: Mapping[str, Spec] = SPECS) -> Schema:
    """Build the schema of a line in a file of events: its header, or an event of these specs."""
    fields = Event.model_json_schema()["properties"]
    common = {name: {"description": fields[name]["description"]} for name in fields}
    header = {
        "type": "object",
        "properties": {
            "schema": {"const": NAME},
            "version": {"const": VERSION},
            **{name: {"type": ["string", "null"], "minLength": 1} for name in Origin.__dataclass_fields__},
        },
        "required": ["schema", "version"],
        "additionalProperties": False,
    }
    steps = [_step(spec, action) for spec in specs.values() for action in spec.actions]
    event = {
        "type": "object",
        "properties": {
            "source": common["source"] | {"type": "string"},
            "spec": common["spec"] | {"enum": list(specs)},
            "trace": common["trace"] | {"type": "string"},
            "position": common["position"] | INT64,
            "action": common["action"] | {"type": "string"},
            "args": common["args"] | {"type": ["object", "null"]},
            "outcome": common["outcome"] | {"enum": [*OUTCOMES, None], "default": "ok"},
            "saw": common["saw"] | {"type": ["object", "null"]},
        },
        "required": ["source", "spec", "trace", "position", "action"],
        "additionalProperties": False,
        "anyOf": steps,
    }
    return {
        "$schema": DIALECT,
        "title": "a line of a file of events: the first is the header",
        "anyOf": [{"$ref": "#/$defs/header"}, {"$ref": "#/$defs/event"}],
        "$defs": {
            "header": header,
            "event": event,
            "int64": {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
            "number": {"type": ["integer", "boolean"], "minimum": -(2**63), "maximum": 2**63 - 1},
            **{f"seen_of_{name}": _seen(spec) for name, spec in specs.items()},
        },
    }


def _step(spec: Spec, action: str) -> Schema:
    """Build the schema of one step's event, with all its arguments."""
    arguments = spec.parameters[action]
    args = {
        "type": "object" if arguments else ["object", "null"],
        "properties": {
            name: {"enum": [0, 1, False, True]} if name in spec.flags[action] else NUMBER for name in arguments
        },
        "required": list(arguments),
        "additionalProperties": {"type": "null"},
    }
    saw = {"$ref": f"#/$defs/seen_of_{spec.name}"}
    return {
        "properties": {"spec": {"const": spec.name}, "action": {"const": action}, "args": args, "saw": saw},
        "required": ["args"] if arguments else [],
    }


def _seen(spec: Spec) -> Schema:
    """Build the schema of a spec's observed fields."""
    return {
        "properties": {name: {"anyOf": [NUMBER, {"type": "null"}]} for name in spec.scalars},
        "additionalProperties": {"type": "null"},
    }


def _of_a_source(made: Callable[[], Schema]) -> Callable[[Mapping[str, Spec]], Schema]:
    """Return the builder of the schema of a form that one source reads: no spec is named in it."""
    return lambda _specs: {"$schema": DIALECT, **made()}


SCHEMAS: dict[str, Callable[[Mapping[str, Spec]], Schema]] = {
    "report": report_schema,
    "events": events_schema,
    **{name: _of_a_source(made) for name, made in registry.schemas().items()},
}
"""By the name of what they describe."""
