"""How far each spec is explored: the numbers that its steps are tried with, and the states that are not passed.

A spec knows no bounds; they lie here, as TLA+ keeps them in a model beside the specification. An argument is named
alone (`number`) or with its step (`append.size`), which goes before. Numbers reach a little beyond what a state may
hold, so that every need is refused somewhere, and so that a state where nothing more is possible is told apart from
one where nothing more is tried.

Some specs let steps be taken before their subject is opened, in a world of zeros. Most bounds judge where such a step
leads, and do not go on from there: the worlds that are opened show more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from types import SimpleNamespace
from typing import Any

from gapless.spec.catalog import Spec, State
from gapless.spec.coordinator import AT_BIRTH
from gapless.spec.language import Map
from gapless.spec.queue import BLANK_SLOT

FLAG = (1, 0)


@dataclass(frozen=True)
class Bound:
    """Where the exploration of a spec ends."""

    says: str  # the bound in words
    within: Callable[[State], bool]  # whether steps are taken from here; a state beyond is judged, and not left
    numbers: Mapping[str, Sequence[int]]  # what an argument is tried with, by `argument` or `step.argument`
    worth: Mapping[str, Callable[[Any], bool]] = field(default_factory=dict)  # of a step: which arguments together
    initial: tuple[State, ...] = ()  # where exploration begins, unless in the spec's own initial state

    def arguments(self, spec: Spec, step: str) -> list[tuple[int, ...]]:
        """Every tuple of arguments that a step is tried with, each once."""
        names = spec.parameters[step]
        every = product(*(self._of(spec, name, step) for name in names))
        worth = self.worth.get(step)
        if worth is None:
            return list(every)
        return [args for args in every if worth(SimpleNamespace(**dict(zip(names, args, strict=True))))]

    def universal(self, spec: Spec, names: Sequence[str]) -> list[tuple[int, ...]]:
        """Every tuple of numbers that an invariant is asked about, which holds for all of them."""
        return list(product(*(self._of(spec, name) for name in names)))

    def _of(self, spec: Spec, name: str, step: str = "") -> Sequence[int]:
        for key in (f"{step}.{name}", name):
            if key in self.numbers:
                return tuple(dict.fromkeys(self.numbers[key]))
        where = f" of the step {step}" if step else ", over which an invariant speaks,"
        raise NoBound(f"the bound of {spec.name} does not say which numbers {name}{where} is tried with")


class NoBound(Exception):  # noqa: N818 - its message says all.
    """A spec cannot be explored, for nothing says how far."""


def one_wrong(*flags: int) -> bool:
    """At most one of the flags is 0: what is wrong in two ways is refused for the first of them."""
    return flags.count(0) <= 1


def untouched(s: State) -> bool:
    """Whether nothing has happened yet."""
    return bool(s == type(s)())


def most(counts: Map[Any, int]) -> int:
    """The greatest value that was put into a map; its default where none was."""
    return max(counts.entries.values(), default=counts.default)


# -- log -----------------------------------------------------------------------------------------------------------

PLACES = (0, 4, 8, 16, 20, 24, 32)  # two records of four bytes and a blank of eight fill a file of sixteen

LOG = Bound(
    says="files of 16 bytes, records of 4, two files, times 0 and 1",
    within=lambda s: s.end < 32 and s.newest < 2,
    numbers={
        "position": PLACES,
        "open.position": (0, 16),
        "file_size": (8, 16),
        "append.size": (0, 4),
        "roll.size": (4, 8, 12, 16),
        "claimed": PLACES,
        "to": PLACES,
        "kept": PLACES,
        "time": (0, 1),
        "checkpoint.time": (0, 1, 2),
        **dict.fromkeys(("known", "fits", "intact", "sealed", "marked"), FLAG),
    },
    worth={
        "append": lambda a: a.claimed in (a.position, 0) and one_wrong(a.known, a.fits, a.intact, a.sealed),
    },
)

# -- queue ---------------------------------------------------------------------------------------------------------

QUEUE = Bound(
    says="two messages from number 0 or 1 on, at positions 10 and 20, with or without a tag",
    within=lambda s: s.end - s.first <= 2 and s.end <= 3,
    numbers={
        "number": (-1, 0, 1, 2, 3),
        "open.number": (-1, 0, 1),
        "start": (0, 10, 20),
        "open.start": (0, 10),
        "count": (0, 1, 2),
        "position": (10, 20),
        "index.position": (0, 10, 20),
        "outlive.position": (0, 10, 20),
        "size": (1,),
        "index.size": (1, 2, BLANK_SLOT),
        "tag": (0, 1),
        "base": (0,),
        "length": (1, 2),
        "full": (2,),
        "upto": (0, 10, 15, 25),
        "sent": FLAG,
        "same": FLAG,
    },
    worth={
        # Beyond the bound one message is as good as another.
        "append": lambda a: a.number + a.count <= 3 or (a.position, a.tag) == (10, 0),
    },
)

# -- dispatch ------------------------------------------------------------------------------------------------------

DISPATCH = Bound(
    says="messages 1 to 5 of a queue found at 1, one worker or several, one crash",
    within=lambda s: s.scanned <= 6 and s.lives <= 2 and (s.start == 1 or untouched(s)),
    numbers={
        "number": range(7),
        "open.number": (-1, 1),
        "overlap": FLAG,
        "to": range(8),
        "kept": range(8),
    },
)

# -- ring ----------------------------------------------------------------------------------------------------------

RING = Bound(
    says="rings of one to three slots, six batches: three go twice round, two truncations",
    within=lambda s: s.cut <= 6 and s.services <= 2 and (s.slots > 0 or untouched(s)),
    numbers={
        "slots": (0, 1, 2, 3),
        "batch": range(-1, 8),
        "slot": range(-1, 4),
    },
)

# -- transaction ---------------------------------------------------------------------------------------------------

TRANSACTION = Bound(
    says="two versions of the half, one check, every question asked once",
    within=lambda s: most(s.commits_asked) <= 1 and most(s.rollbacks_asked) <= 1 and s.checks <= 1,
    numbers={
        "start": (0, 10),
        "max_checks": (0, 1),
        "witnessed": (0, 1),
        "number": (0, 1),
        "parent": (0, 1),
        "position": (-1, 10, 20),
        "half": (-1, 10, 20),
        "times": (0, 1, 2),
        "outlive.times": (-1, 0, 1, 2),
        "other": (0, 1),
        "twice": (0,),
        **dict.fromkeys(("asked", "same", "aged"), FLAG),
    },
    worth={
        "open": lambda a: (a.start > 0) + a.max_checks + a.witnessed != 2,  # all but what is between
        "prepare": lambda a: a.position in (10 + 10 * a.number, -1),
        "outlive": lambda a: a.position in (10 + 10 * a.number, -1),
        "check": lambda a: a.position == 10 + 10 * a.number or (a.position < 0 and one_wrong(0, a.asked, a.same)),
        "commit": lambda a: a.position == 10,  # where the final lies, which is nobody's business
        "park": lambda a: a.position == 10,
    },
)

TRANSACTION_OF_A_BROKER = replace(
    TRANSACTION,
    says="two versions of the half, one check, two decisions and answers, one op each",
    within=lambda s: (
        most(s.commits_asked) + most(s.rollbacks_asked) == 0
        and s.finals + most(s.rollbacks) + most(s.commits_told) <= 2
        and most(s.marks) <= 1
        and s.checks <= 1
    ),
    numbers={
        **TRANSACTION.numbers,
        "start": (10,),
        "max_checks": (0,),
        "witnessed": (0,),
        "position": (10, 20),
        "outlive.times": (0, 1),
        "ask_to_commit.number": (0,),
        "ask_to_roll_back.number": (0,),
        "acknowledge.number": (0,),
        "twice": FLAG,
    },
    worth={
        **TRANSACTION.worth,
        "check": lambda a: a.parent < a.number and a.position == 20 and one_wrong(a.asked, a.same),
        "park": lambda a: a.position == 10 and one_wrong(a.same, a.aged),
        "commit": lambda a: a.position == 10 and one_wrong(a.same, 1 - a.twice),
    },
)

# -- checkpoint ----------------------------------------------------------------------------------------------------

CHECKPOINT = Bound(
    says="three halves from number 0 or 1 on, and two ops",
    within=lambda s: s.half_end <= 3 and s.op_end <= 2,
    numbers={
        "half.number": (0, 1, 2, 3),
        "number": (0, 1, 2, 3),
        "half": (-1, 0, 1),
        "op": (-1, 0),
        "to": (0, 1, 2, 3, 4),
        "reach": (0, 1, 3),
    },
    worth={"op": lambda a: a.number < 2 or a.reach == 0},  # beyond the bound one op is as good as another
)

# -- op_batch ------------------------------------------------------------------------------------------------------

OP_BATCH = Bound(
    says="two halves of two bytes, bodies of three, an interval of two, three ticks, two ops",
    within=lambda s: s.clock <= 3 and s.ops <= 2 and s.count <= 2 and most(s.named) <= 2,
    numbers={
        "max_size": (0, 3),
        "interval": (0, 2),
        "number": (0, 1),
        "length": (0, 2),
        "count": (0, 1, 2),
        "size": (2, 3, 4),
        "last": (0, 2),
        "time": (0, 1, 2, 3, 4),
        **dict.fromkeys(("known", "legible", "listed"), FLAG),
    },
)

# -- half_cache ----------------------------------------------------------------------------------------------------

HALF_CACHE = Bound(
    says="halves 1 to 3 of a cache found at 1, room for none, one or two, one question or one restart",
    within=lambda s: s.end <= 4 and s.lives + s.answers <= 2 and (s.start == 1 or untouched(s)),
    numbers={
        "number": range(5),
        "open.number": (-1, 1),
        "capacity": (-1, 0, 1, 2),
        "place": range(-1, 6),
        "to": range(6),
        "kept": range(6),
    },
)

# -- coordinator ---------------------------------------------------------------------------------------------------

COORDINATOR = Bound(
    says="limits -1 to 2, and 1 after a recovery; two transactions, all that can befall the first; one is ignored",
    within=lambda s: (
        (s.opened == 1 or untouched(s)) and s.end <= 2 and s.peak <= 2 and s.ignored <= 1 and s.added[0] <= s.handed[0]
    ),
    numbers={
        "number": (0, 1, 2),
        **dict.fromkeys(("load.number", "decide.number", "time_out.number", "finish.number"), (0, 1)),
        **dict.fromkeys(("hand.number", "add.number", "acknowledge.number"), (0,)),
        "limit": (-1, 0, 1, 2),
        "recover.limit": (1,),
        "status": range(6),
        "decide.to": (2, 3, 4),
        "finish.to": (4, 5),
        "time": (0,),
        "time_out.time": (0, 1),
        "life": (1, AT_BIRTH),
    },
    worth={
        "begin": lambda a: a.life == (1 if a.number == 0 else AT_BIRTH),
        "decide": lambda a: a.number == 0 or a.to != 3,
    },
)

COORDINATOR_OF_PULSAR = replace(
    COORDINATOR,
    says="limits -1 to 2, and 1 after a recovery; two transactions, of which the second stays open; one is ignored",
    numbers={**COORDINATOR.numbers, "decide.number": (0,), "finish.number": (0,)},
)

# -- permits -------------------------------------------------------------------------------------------------------

PERMITS = Bound(
    says="two permits, three requests, a timeout of two or none that is known, two ticks, one cut, one answer each",
    within=lambda s: s.clock <= 2 and s.cuts <= 1 and most(s.answers) <= 1 and (s.permits == 2 or untouched(s)),
    numbers={
        "permits": (0, 2),
        "timeout": (0, 2),
        "number": (0, 1, 2),
        "time": (0, 1, 2, 3),
        "within": FLAG,
    },
)

PERMITS_OF_PULSAR = replace(
    PERMITS,
    says="two permits, three requests, a timeout of one, one tick, one cut, one answer each",
    within=lambda s: s.clock <= 1 and PERMITS.within(s),
    numbers={**PERMITS.numbers, "timeout": (1,), "time": (0, 1, 2)},
)

# -- broker --------------------------------------------------------------------------------------------------------

BROKER = Bound(
    says="half 0, six records, two checks, two restarts",
    within=lambda s: s.end <= 6 and s.checks <= 2 and s.lives <= 3 and (s.lives > 0 or untouched(s)),
    numbers={
        "number": (-1, 0, 1),
        "prepare.number": (-1, 0),
        "max_checks": (0, 1, 2),
        "position": range(-1, 8),
        "times": range(4),
        "to": range(8),
        "kept": range(8),
        "group": (1, 2),
        "queue": (1, 2),
        "prepare.group": (1,),
        "prepare.queue": (1,),
    },
)

BOUNDS: Mapping[str, Bound] = {
    "log": LOG,
    "queue": QUEUE,
    "dispatch": DISPATCH,
    "ring": RING,
    "transaction": TRANSACTION,
    "checkpoint": CHECKPOINT,
    "op_batch": OP_BATCH,
    "half_cache": HALF_CACHE,
    "coordinator": COORDINATOR,
    "permits": PERMITS,
    "broker": BROKER,
}

WITH_DEVIATIONS: Mapping[str, Bound] = {
    **BOUNDS,
    "transaction": TRANSACTION_OF_A_BROKER,
    "coordinator": COORDINATOR_OF_PULSAR,
    "permits": PERMITS_OF_PULSAR,
}
"""Closer ones, where what brokers do besides would make too many states."""


def bound_of(spec: Spec, profile: str | None) -> Bound:
    """How far a spec is explored. Raises NoBound."""
    bounds = WITH_DEVIATIONS if profile and spec.allowed(profile) else BOUNDS
    if spec.name not in bounds:
        raise NoBound(f"{spec.name} has no bound: add one to properties/exploration/bounds.py")
    return bounds[spec.name]
