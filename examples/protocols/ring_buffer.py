"""A ring buffer with one writer and several readers, each at its own pace and without a lock: LMAX's Disruptor.

As TLA+'s Disruptor_SPMC has it. Of what a reader has read, only the next number counts here: `in_order` says that all
before it were right.
"""

from dataclasses import dataclass
from typing import NewType

from gapless.spec.language import Bound, Map, all_between, applies, implies, replace, require

Reader = NewType("Reader", int)
Event = NewType("Event", int)
READERS = 3
SLOTS = 4
EVENTS = 10


@dataclass(frozen=True, slots=True)
class State:
    """The slots, the writer, and the readers."""

    readers: int = READERS  # which no step changes
    published: Event = Event(0)  # events before it may be read
    writing: bool = False
    slots: Map[int, Event] = Map(Event(-1))  # the event in each slot
    read: Map[Reader, Event] = Map(Event(0))  # of each reader: events before it were read
    reading: Map[Reader, bool] = Map(False)


def begin_write(s: State) -> State:
    """The writer begins to write the next event."""
    applies(not s.writing)
    require(
        all_between(0, s.readers, lambda r: s.published - s.read[Reader(r)] < SLOTS),
        "slot-is-free",
        because="all readers have read what was in the slot",
        otherwise="a reader finds half of one event, and half of another",
    )
    return replace(s, writing=True, slots=s.slots.set(s.published % SLOTS, s.published))


def end_write(s: State) -> State:
    """The writer publishes the event."""
    applies(s.writing)
    return replace(s, writing=False, published=Event(s.published + 1))


def begin_read(s: State, reader: Reader) -> State:
    """A reader begins to read its next event."""
    applies(0 <= reader < s.readers and not s.reading[reader])
    require(
        s.read[reader] < s.published,
        "event-is-published",
        because="the event is published",
        otherwise="a reader reads what is not written yet",
    )
    return replace(s, reading=s.reading.set(reader, True))


def end_read(s: State, reader: Reader) -> State:
    """A reader has read its event."""
    applies(s.reading[reader])
    return replace(s, reading=s.reading.set(reader, False), read=s.read.set(reader, Event(s.read[reader] + 1)))


def written(s: State) -> int:
    """The events before this one are in their slots, or are being written."""
    return s.published + (1 if s.writing else 0)


def who_reads_is_alone_in_the_slot(s: State, reader: Reader) -> bool:
    """Otherwise the writer overwrites what is being read."""
    return not (s.writing and s.reading[reader] and s.published % SLOTS == s.read[reader] % SLOTS)


def in_order(s: State, reader: Reader) -> bool:
    """Otherwise a reader reads another event than the next one."""
    return implies(s.reading[reader], s.slots[s.read[reader] % SLOTS] == s.read[reader])


def no_reader_is_ahead(s: State, reader: Reader) -> bool:
    """Otherwise it reads what is not written yet."""
    return implies(0 <= reader < s.readers, 0 <= s.read[reader] and s.read[reader] <= s.published)


def who_reads_has_something_to_read(s: State, reader: Reader) -> bool:
    """Otherwise it reads what is not written yet."""
    return implies(s.reading[reader], 0 <= reader < s.readers and s.read[reader] < s.published)


def no_reader_is_a_round_behind(s: State, reader: Reader) -> bool:
    """Otherwise its events are overwritten."""
    return implies(0 <= reader < s.readers, written(s) - s.read[reader] <= SLOTS)


def slots_have_the_last_events(s: State, event: Event) -> bool:
    """Otherwise an event is lost before it is read."""
    return implies(
        0 <= event < written(s) and written(s) - event <= SLOTS,
        s.slots[event % SLOTS] == event,
    )


def events_are_counted(s: State) -> bool:
    """Otherwise an event has no slot."""
    return s.published >= 0


INITIAL = State()
ACTIONS = (begin_write, end_write, begin_read, end_read)
INVARIANTS = (
    who_reads_is_alone_in_the_slot,
    in_order,
    no_reader_is_ahead,
    who_reads_has_something_to_read,
    no_reader_is_a_round_behind,
    slots_have_the_last_events,
    events_are_counted,
)
BOUND = Bound(
    says="ten events",
    within=lambda s: s.published <= EVENTS,
    numbers={"reader": range(READERS), "event": range(EVENTS + 1)},
)
