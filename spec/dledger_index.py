"""The index of a DLedger log: a unit for every entry, which says where it lies, how long it is, and of which term.

A leader finds an entry by it that a follower lacks, and a follower the entry that it compares.

Source: docs/rocketmq.md#dledger-index.
"""

from dataclasses import dataclass

from gapless.spec.language import Number, Position, assume, implies, replace, require


@dataclass(frozen=True, slots=True)
class State:
    """The entries whose units are known."""

    begun: bool = False
    first: Number = Number(0)  # of the first entry that the log holds
    end: Number = Number(0)  # behind the last entry whose unit was found
    missing: int = 0  # how often entries from there on were reported without units


def open(s: State, first: Number) -> State:  # noqa: A001 - the step's name in every trace.
    """A log is found: the first entry that it holds has index `first`. Those below have expired."""
    require(not s.begun, "dledger-index-is-new",
        because="the index is new", otherwise="two logs are taken for one")
    assume(0 <= first, because="indexes of entries begin at 0")
    return replace(s, begun=True, first=first, end=first)


def find_unit(
    s: State, number: Number, position: Position, size: int, term: int, known: bool,
    its_number: Number, its_position: Position, its_size: int, its_term: int,
) -> State:
    """Entry `number` lies at `position`, is `size` bytes long and of `term`, and its unit is read.

    `known`: the unit has the magic number of one · `its_number` …: what it says.

    Source: docs/rocketmq.md#dledger-index; DLedgerMmapFileStore.appendAsLeader, getIndexEntry.
    """
    require(s.begun and number == s.end and s.missing == 0, "every-dledger-entry-before-it-has-its-unit",
        because="the entry follows the one before it, and that has its unit",
        otherwise="the broker finds no entry there, and a follower that asks for it waits for ever")
    require(known, "dledger-entry-has-its-unit",
        because="the entry has its unit",
        otherwise="the broker finds no entry there, and a follower that asks for it waits for ever")
    require(its_number == number, "dledger-unit-has-the-index-of-its-entry",
        because="the unit has the index of its entry", otherwise="another entry is sent in its place")
    require(its_position == position, "dledger-unit-points-at-its-entry",
        because="the unit points at its entry", otherwise="followers are sent bytes that are no entry, or another one")
    require(its_size == size, "dledger-unit-has-the-size-of-its-entry",
        because="the unit has the size of its entry", otherwise="followers are sent an entry cut short, or none")
    require(its_term == term, "dledger-unit-has-the-term-of-its-entry",
        because="the unit has the term of its entry",
        otherwise="replicas compare terms that are not, and cut off what was committed")
    assume(0 < size, because="an entry that is whole has a size")
    return replace(s, end=Number(number + 1))


def miss_units(s: State, number: Number, killed: bool) -> State:
    """No entry from `number` on has its unit. `killed`: the broker did not stop in order.

    Source: docs/rocketmq.md#dledger-index; DLedgerMmapFileStore.appendAsLeader writes the unit behind its entry.
    """
    require(s.begun and number == s.end, "every-dledger-entry-before-those-has-its-unit",
        because="these entries follow one that has its unit",
        otherwise="the broker finds no entry there, and a follower that asks for it waits for ever")
    require(killed, "dledger-entries-without-units-come-of-a-kill",
        because="the broker was killed before it had written the units",
        otherwise="the broker finds no entry there, and a follower that asks for it waits for ever")
    return replace(s, missing=s.missing + 1)


def start(s: State, numbered: bool, sized: bool) -> State:
    """The broker's next start takes every file of the index.

    `numbered`: each is called by a number · `sized`: all have one length.

    Source: docs/rocketmq.md#dledger-index-start; MmapFileList.doLoad, DLedgerMmapFileStore.load.
    """
    require(numbered, "dledger-index-files-are-called-by-numbers",
        because="every file is called by a number", otherwise="the broker does not start")
    require(sized, "dledger-index-files-have-one-length",
        because="every file has the length that all are born with", otherwise="the broker does not start")
    return s


def units_belong_to_entries_that_the_log_holds(s: State) -> bool:
    """Otherwise the broker finds entries that have expired."""
    return 0 <= s.first and s.first <= s.end and 0 <= s.missing


def nothing_is_found_before_a_log_is(s: State) -> bool:
    """Otherwise units are counted that were never looked at."""
    return s.begun or (s.first == 0 and s.end == 0 and s.missing == 0)


def units_are_found_one_by_one(before: State, after: State) -> bool:
    """Otherwise an entry is passed over."""
    return not before.begun or after.end == before.end or after.end == before.end + 1


def no_unit_is_found_behind_those_that_are_missing(before: State, after: State) -> bool:
    """Otherwise an entry between others cannot be found, unnoticed."""
    return implies(0 < before.missing, after.end == before.end)


def a_log_begins_once(before: State, after: State) -> bool:
    """Otherwise two logs are taken for one."""
    return implies(before.begun, after.begun and after.first == before.first)


# What can be done, from whatever state.


INITIAL = State()
ACTIONS = (open, find_unit, miss_units, start)
INVARIANTS = (units_belong_to_entries_that_the_log_holds, nothing_is_found_before_a_log_is)
STEP_PROPERTIES = (
    units_are_found_one_by_one,
    no_unit_is_found_behind_those_that_are_missing,
    a_log_begins_once,
)
