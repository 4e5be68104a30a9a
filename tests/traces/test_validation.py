"""Refusals of models are worded in our terms, and a mistyped name gets a suggestion."""

from typing import Annotated, Any, Literal, get_args

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core.core_schema import ErrorType

from gapless.traces.suggestions import did_you_mean, first_of, nearest, one_of
from gapless.traces.validation import refused

PHRASES = ("Value error", "Input should", "Field required", "Extra inputs", "should have", "should match", "pydantic")


class Inner(BaseModel):
    """A part of another."""

    model_config = ConfigDict(extra="forbid", strict=True)

    size: Annotated[int, Field(ge=0)] = 0
    kind: Literal["a", "b"] = "a"


class Outer(BaseModel):
    """With a part."""

    model_config = ConfigDict(extra="forbid", strict=True)

    source: str
    position: Annotated[int, Field(lt=100)]
    args: Inner = Inner()


GOOD = {"source": "a", "position": 1}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"src": "a", "pos": 1}, "unknown fields src, pos; missing: source, position"),
        ({"source": "a"}, "missing: position"),
        ({"source": "a", "positon": 1}, "unknown field positon (did you mean position?); missing: position"),
        (GOOD | {"sources": 1}, "unknown field sources (did you mean source?)"),
        (GOOD | {"zzz": 1}, "unknown field zzz, expected source, position or args"),
        (GOOD | {"args": {"sice": 1}}, "unknown field sice of args"),
        (GOOD | {"position": 1.5}, "position is 1.5, expected a whole number"),
        (GOOD | {"position": "1"}, "position is '1', expected a whole number"),
        (GOOD | {"position": 100}, "position is 100, expected less than 100"),
        (GOOD | {"source": None}, "source is null, expected a text"),
        (GOOD | {"source": "x" * 99, "position": "y" * 99}, f"position is '{'y' * 38}…, expected a whole number"),
        (GOOD | {"args": {"size": -1}}, "args.size of append is -1, expected at least 0"),
        (GOOD | {"args": {"kind": "c"}}, "args.kind of append is 'c', expected a or b"),
        (GOOD | {"args": 5}, "args is 5, expected an object"),
        ([], "this is [], expected an object"),
    ],
)
def test_a_refused_value_is_shown_with_the_expected_one(given: Any, sentence: str) -> None:
    with pytest.raises(ValidationError) as error:
        Outer.model_validate(given)
    assert refused(error.value, Outer.model_fields, of="append") == sentence


CONTEXT = {
    **dict.fromkeys(
        ("ge", "gt", "le", "lt", "min_length", "max_length", "multiple_of", "actual_length", "tz_actual"), 1
    ),
    **dict.fromkeys(("max_digits", "decimal_places", "whole_digits", "expected_version", "tz_expected"), 1),
    **dict.fromkeys(("expected", "pattern", "error", "field_type", "discriminator", "tag", "class", "encoding"), "x"),
    **dict.fromkeys(("class_name", "attribute", "method_name", "function_name", "encoding_error", "name"), "x"),
    **dict.fromkeys(("expected_schemes", "expected_tags"), "'a', 'b'"),
}
"""Something for each key that a kind of error may need."""


def test_no_kind_of_error_is_worded_by_the_library() -> None:
    """Covers all kinds of errors that the library has."""
    worded = 0
    for kind in get_args(ErrorType):
        details: Any = {"type": kind, "loc": ("position",), "input": 5, "ctx": CONTEXT}
        try:
            error = ValidationError.from_exception_data("Outer", [details])
            error.errors()
        except (TypeError, KeyError):
            continue
        worded += 1
        sentence = refused(error)
        assert not [phrase for phrase in PHRASES if phrase in sentence], (kind, sentence)
        assert "position" in sentence or "not JSON" in sentence, (kind, sentence)
    assert worded > 90


def test_a_suggestion_passes_over_case_and_dashes() -> None:
    assert nearest("fail_on", ["baseline", "fail-on"]) == ["fail-on"]
    assert nearest("Order", ["payments", "orders"]) == ["orders"]
    assert nearest("entry-points-at-its-message", ["log/x", "queue/entry-points-at-its-message"]) == [
        "queue/entry-points-at-its-message"
    ]
    assert did_you_mean("zzz", ["orders"]) == ""
    assert did_you_mean("", ["orders"]) == ""
    assert (one_of(["a"]), one_of(["a", "b", "c"])) == ("a", "a, b or c")
    assert first_of(list("abc"), 2) == "a, b and 1 more"
