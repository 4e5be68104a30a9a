"""Explains departures of the hash index: the place, and the violation in one sentence."""

from __future__ import annotations

from gapless.traces.report.values import Where
from gapless.traces.sources.rocketmq.joining.findings import Breach, StoreFindings
from gapless.traces.sources.rocketmq.layouts.hash_index.index_files import IndexFile, files_in
from gapless.traces.sources.rocketmq.layouts.layout import Explanation
from gapless.traces.sources.rocketmq.layouts.tiered.index_files import TieredIndexFile, opened_index

HEADER = {"used": 32, "items": 36, "first": 16, "last": 24}
"""Where in a file's header each of the numbers lies that it may have wrong; its times begin it."""
TIERED = {"used": 20, "items": 24}
"""The same of a file of tiered storage, whose times come behind a number that says what it is."""
TIMES_OF_TIERED = 4


def place(judged: StoreFindings, found: Breach) -> Where | None:
    """The place in the file; None for a key, whose place is its record's."""
    if found.action == "look_up":
        return None
    if found.trace in judged.tiered_index:
        (tiered,) = (file for file in opened_index(judged)[0] if file.name == found.trace)
        return _place_in(tiered, tiered.file, found, TIERED.get(wrong_in_header(found), TIMES_OF_TIERED))
    file = next((file for file in files_in(judged.store) if file.name == found.trace), None)
    return _place_in(file, file.name, found, HEADER.get(wrong_in_header(found), 0)) if file else None


def _place_in(file: IndexFile | TieredIndexFile, name: str, found: Breach, in_header: int) -> Where:
    if found.action == "find_slot":
        return Where(file=name, offset=file.slot_at(found.arguments["slot"]))
    if found.action == "find_header":
        return Where(file=name, offset=in_header)
    return Where(file=name, offset=file.item_at(int(found.departure.state.items)))


def wrong_in_header(found: Breach) -> str:
    """Returns the name of a header's wrong number; empty for a time, or without a header."""
    if found.action != "find_header":
        return ""
    return next((name for name in HEADER if found.arguments[name] != getattr(found.departure.state, name)), "")


def message(found: Breach) -> str:
    """Describes the violation in one sentence without its end."""
    args, state = found.arguments, found.departure.state
    match found.action:
        case "look_up":
            what = f"a key of the record at {args['position']} leads to no item ({found.detail})"
        case "find_slot":
            what = f"slot {args['slot']} leads to item {args['head']}, and its newest is {state.heads[args['slot']]}"
        case "find_header":
            name = wrong_in_header(found)
            what = "the header's times are not those of the first and the last record"
            if name:
                what = f"the header has {args[name]} for {HEADER_WORDS[name]}, which is {getattr(state, name)}"
        case "put":
            at = found.detail or str(args["position"])
            what = f"item {state.items}, which points at {at}, {_of_an_item(found)}"
        case _:
            what = f"breaks the rule: {found.departure.because}"
    return what


def _of_an_item(found: Breach) -> str:
    args, state = found.arguments, found.departure.state
    before = state.heads[args["slot"]]
    if not args["owned"]:
        return "has the hash of no key of a record there"
    if args["position"] < state.last:
        return f"comes behind one that points at {state.last}"
    if args["previous"] != before:
        return f"leads to item {args['previous']}, and the one before it in its slot is {before}"
    return "has another time than its record"


HEADER_WORDS = {
    "used": "the slots in use",
    "items": "the end of its items",
    "first": "its first record",
    "last": "its last one",
}


EXPLANATION = Explanation(place, message)
