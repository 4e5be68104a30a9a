"""Explains departures of a DLedger log's index: the place, and the violation in one sentence."""

from __future__ import annotations

from gapless.traces.report.values import Where
from gapless.traces.sources.rocketmq.explanations.sentences import by_rule
from gapless.traces.sources.rocketmq.joining.findings import Breach, StoreFindings
from gapless.traces.sources.rocketmq.layouts.dledger_index.units import index_files, place_of_unit
from gapless.traces.sources.rocketmq.layouts.layout import OF_THE_LOG, Explanation
from gapless.traces.sources.rocketmq.startup.startup_files import UnexpectedFile

SENTENCES = by_rule(
    "dledger_index/dledger-",
    {
        "entry-has-its-unit": "is missing",
        "unit-has-the-index-of-its-entry": "has index {its_number}",
        "unit-points-at-its-entry": "points at {its_position}, and the entry lies at {position}",
        "unit-has-the-size-of-its-entry": "has size {its_size}, the entry {size}",
        "unit-has-the-term-of-its-entry": "has term {its_term}, the entry {term}",
    },
)


def place(judged: StoreFindings, found: Breach) -> Where:
    """The unit; or the file that a start stumbles over."""
    if found.action == "start":
        return UnexpectedFile.of(found.detail).place
    dledger = judged.store.dledger
    base, offset = place_of_unit(index_files(dledger) if dledger else [], found.arguments.get("number", 0))
    return Where(file=f"{found.trace}/{base:020d}", offset=offset)


def message(found: Breach) -> str:
    """Describes the violation in one sentence without its end."""
    if found.action == "start":
        return UnexpectedFile.of(found.detail).sentence
    sentence = SENTENCES.get(found.rule, f"breaks the rule: {found.departure.because}")
    return f"the unit of entry {found.arguments.get('number', 0)} {sentence.format(**found.arguments)}"


EXPLANATION = Explanation(place, message, rank=OF_THE_LOG)
