"""The whole table: the situations of the log, of queues, transactions and clients, and of every layout."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from gapless.traces.sources.rocketmq.blame.situation import Situation
from gapless.traces.sources.rocketmq.layouts.registry import LAYOUTS

COMMON = "store", "log", "queues", "transactions"  # modules of this folder; a layout's lie in its own, as `blame.py`


def situations() -> tuple[Situation, ...]:
    """Returns all situations, in the order of their subjects."""
    names = [f"{__package__}.{name}" for name in COMMON]
    names += [f"{layout.package}.{layout.name}.blame" for layout in LAYOUTS]
    modules = [import_module(name) for name in names if find_spec(name)]
    return tuple(one for module in modules for one in vars(module).values() if isinstance(one, Situation))
