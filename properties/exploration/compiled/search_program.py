"""A spec's search as one function of native code, for states of one layout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gapless.native import Function, SyntaxFunction, int64, specialised
from gapless.native.intrinsics import count_bits
from gapless.properties.exploration.compiled import calls, loop, packed_state, table
from gapless.properties.exploration.compiled.intrinsics import quotient, rest_of
from gapless.properties.exploration.compiled.steps import SearchSteps
from gapless.properties.exploration.packing import LINE, WORD, StateLayout

NARROW = 31  # keys of a Map that are distinguished by the lower half of a word
COMMON: dict[str, Any] = {
    "int64": int64, "count_bits": count_bits, "quotient": quotient, "rest_of": rest_of, "copy": table.copy,
    "accept": loop.accept, "below": packed_state.below, "between": calls.between,
    "leave_alone": packed_state.leave_alone,
}  # fmt: skip
"""The functions that generated ones call, whatever the spec."""


def bound(of: Any, name: str, **names: Any) -> Function:
    """A function under another name, with other values of global names."""
    return SyntaxFunction(
        name, of.node, {**of.names, **names}, inline=of.inline, apart=of.apart, distinct=of.distinct
    )  # fmt: skip


def search_functions(steps: SearchSteps, packing: StateLayout, known: Mapping[str, int]) -> dict[str, Function]:
    """The functions `search` and `fill_slots`. `known`: the constants that are known of the calls."""
    names: dict[str, Any] = {**COMMON, **known, **_fields(steps, packing)}
    names |= {"STRIDE": packing.words + 2, "ORIGIN": packing.origin}
    functions = steps.functions
    for name, (node, is_inline) in functions.items():
        names[name] = SyntaxFunction(name, node, names, inline=is_inline, distinct=True)
    for code, how in steps.how.items():
        parts = {part: names[f"{part}_{code}"] for part in ("is_refused", "narrowed", "asked", "take")
                 if f"{part}_{code}" in functions}  # fmt: skip
        constants = {name: known[name.replace("_", f"_{code}_")] for name in CALL_CONSTANTS}
        names[f"try_{code}"] = bound(getattr(calls, how), f"try_{code}", **parts, **constants)
    each = tuple(range(packing.words))
    shape = {
        "WORDS": packing.words,
        "EACH_WORD": each,
        "LATER_WORDS": each[1:],
        "LINE": LINE if packing.words == 1 else 1,
    }
    return {
        "search": specialised(
            loop.search, **shape, WAYS=steps.ways, try_calls=names["try_calls"], is_right=names["is_right"]
        ),
        "fill_slots": specialised(loop.fill_slots, **shape),
    }


CALL_CONSTANTS = "RUNS_FIRST", "RUNS_END", "CALLS_FIRST", "CALLS_END", "CALLS_LOW"


def _fields(steps: SearchSteps, packing: StateLayout) -> dict[str, Any]:
    """The functions of a packed state's fields."""
    spec, rows, made = steps.spec, packing.rows.tolist(), dict[str, Any]()
    for number, _ in enumerate(spec.scalars):
        place = _placed(number, rows[number])
        made[f"number_{number}"] = bound(packed_state.number_in, f"number_{number}", **place)
        made[f"change_{number}"] = bound(packed_state.change_number, f"change_{number}", **place)
    empty = packing.packed(
        [one.least for one in packing.numbers],  # a state without INITIAL's numbers has no room for them
        [getattr(spec.initial, name).cleared().__getitem__ for name in spec.maps],
    )
    made["pair_key"] = bound(packed_state.pair_key, "pair_key", ORIGIN=packing.origin, WIDTH=packing.width)
    places = []
    for column, name in enumerate(spec.maps):
        number = len(spec.scalars) + column
        origin = 0 if packing.pairs[column] else packing.origin
        place = _placed(number, rows[number]) | {"ORIGIN": origin, "WIDTH": packing.places(column)}
        place |= {"DEFAULT": int(getattr(spec.initial, name).default)}
        place |= _words_of(rows[number], packing, packing.places(column), empty)
        places.append(place)
        for word, function in (("at", packed_state.value_at), ("put", packed_state.put_value),
                               ("forget", packed_state.forget_values)):  # fmt: skip
            made[f"{word}_{column}"] = bound(function, f"{word}_{column}", **place)
        place["at"], place["put"] = made[f"at_{column}"], made[f"put_{column}"]
        for word, function in (("most", packed_state.most_value), ("entries", packed_state.count_keys)):
            made[f"{word}_{column}"] = bound(function, f"{word}_{column}", **place)
    for column, source in sorted(steps.copied):
        name = f"copy_{column}_{source}"
        made[name] = bound(packed_state.copy_map, name, **places[column], other_at=made[f"at_{source}"])
    for name, (sort, *given) in sorted(steps.bits.functions.items(), key=lambda one: one[1][0] != "equal"):
        made[name] = _equal(name, places, *given) if sort == "equal" else _compared(name, made, places, *given)
    return made


def _placed(field: int, row: list[int]) -> dict[str, Any]:
    return {"FIELD": field, **dict(zip(("BIT", "SHIFT", "LEAST", "MASK"), row, strict=True))}


def _words_of(row: list[int], packing: StateLayout, places: int, empty: list[int]) -> dict[str, Any]:
    """The words of a Map's values, their bits there, and these words in a state whose Maps are empty."""
    bit, shift, _, _ = row
    end = bit + (places << shift)
    words = tuple(range(bit // WORD, (end + WORD - 1) // WORD))
    values = [0] * packing.words
    for word in words:
        low, high = max(bit - WORD * word, 0), min(end - WORD * word, WORD)
        values[word] = (1 << high) - (1 << low)
    return {"MAP_WORDS": words, "VALUES": np.array(values, np.uint64), "EMPTY": np.array(empty, np.uint64)}


def is_narrow(place: Mapping[str, Any]) -> bool:
    """True if the values of a Map have one bit each, all in one word."""
    width = place["WIDTH"]
    fits = width <= NARROW and place["BIT"] % WORD + width <= WORD
    return bool(place["SHIFT"] == 0 and place["MASK"] == 1 and fits)


def _equal(name: str, places: list[dict[str, Any]], column: int, count: int) -> Function:
    place = places[column]
    of = packed_state.equal_bits if is_narrow(place) else packed_state.equal_keys
    return bound(of, name, **place, KEYS=tuple(range(count)))


def _compared(
    name: str, made: Mapping[str, Any], places: list[dict[str, Any]], one: int, other: int, sign: str, count: int
) -> Function:
    compare, combine = packed_state.COMPARISONS[sign]
    alike = places[one]["LEAST"] == places[other]["LEAST"]
    if alike and is_narrow(places[one]) and is_narrow(places[other]):
        equal = {"equal": made[f"equal_{one}_{count}"], "other_equal": made[f"equal_{other}_{count}"]}
        return bound(packed_state.compare_bits, name, **equal, combine=combine, LEAST=places[one]["LEAST"])
    at = {"at": made[f"at_{one}"], "other_at": made[f"at_{other}"]}
    return bound(packed_state.compare_keys, name, **at, compare=compare, KEYS=tuple(range(count)))
