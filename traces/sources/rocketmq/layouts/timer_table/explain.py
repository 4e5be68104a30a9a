"""Explains departures of the table of timers: the place, and the violation in one sentence."""

from __future__ import annotations

from gapless.traces.report.values import Where
from gapless.traces.sources.rocketmq.joining.findings import Breach
from gapless.traces.sources.rocketmq.layouts.layout import Explanation
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory

TABLE = "rocksdbstore/RocksDB:timer"  # its column family, in which a row's key is a time and a message's UNIQ_KEY


def place(_store: StoreDirectory, found: Breach) -> Where | None:
    """The row, by the position that it names; None where it is about the message in the log."""
    if found.action == "read_to":
        return Where(file=f"{TABLE}/sys_topic_scan_offset_checkpoint", offset=found.arguments["number"])
    return Where(file=TABLE, offset=found.position) if found.action == "find_row" else None


def message(found: Breach) -> str:
    """Describes the violation in one sentence without its end."""
    args, state = found.arguments, found.departure.state
    both = f" ({found.detail})" if found.detail else ""
    match found.action:
        case "read_to":
            return f"the table of timers has read {args['number']} waiting messages, and there are {args['end']}"
        case "seek":
            return f"the message at {state.last} waits, and the table of timers has no row for it{both}"
        case "deliver":
            return f"the message at {state.last} was due, and lies {args['copies']} times in its topic{both}"
    return (
        f"a row of the table of timers, which names {found.position}, breaks the rule: {found.departure.because}{both}"
    )


EXPLANATION = Explanation(place, message)
