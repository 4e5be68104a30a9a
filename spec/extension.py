"""The extension of one queue: units for data that does not fit into entries, a tag code and a bitmap."""

from dataclasses import dataclass

from gapless.spec.language import Number, replace, require

UNIT = 20  # bytes of a unit without a bitmap: its size, a tag code, a store time, and the bitmap's size
END_BLANK = 4  # bytes that every file keeps behind its last unit


@dataclass(frozen=True, slots=True)
class State:
    """The units that entries were followed to."""

    units: int = 0  # how many
    size: int = 0  # bytes of them all
    filters: int = 0  # bytes of their bitmaps


def find_file(s: State, length: int, full: int) -> State:
    """A file of the extension is found: `length` bytes, where files are born with `full`.

    Source: docs/rocketmq.md#extended; MappedFileQueue.doLoad.
    """
    require(length == full, "file-of-the-extension-has-its-full-length",
        because="a file of the extension has its full length",
        otherwise="the broker refuses to start, and units beyond the cut are lost")
    return s


def find_unit(s: State, number: Number, size: int, bitmap: int, room: int, whole: bool, timely: bool) -> State:
    """Entry `number` names a unit of `size` bytes with `bitmap` bytes for filters; its file has `room` bytes left.

    `whole` says that a unit lies there; `timely`, that it has the store time of the entry's message. Its tag code is
    that of the entry (`queue.index`).

    Source: docs/rocketmq.md#extended; ConsumeQueueExt.
    """
    require(whole, "entry-names-a-unit",
        because="the entry names a unit", otherwise="brokers filter without the tag and the bitmap, and log an error")
    require(size == UNIT + bitmap and 0 <= bitmap, "unit-has-the-size-that-its-bitmap-makes",
        because="the unit has the size that its bitmap makes",
        otherwise="the broker's next start finds no unit behind it, and writes over those that are there")
    require(END_BLANK <= room, "unit-leaves-room-for-the-end-of-its-file",
        because="the unit leaves room for the end of its file",
        otherwise="a start that goes from unit to unit runs into the next file")
    require(timely, "unit-has-the-store-time-of-its-message",
        because="the unit has the store time of its message",
        otherwise="brokers judge by filters of another time, and consumers miss the message")
    return replace(s, units=s.units + 1, size=s.size + size, filters=s.filters + bitmap)


def units_are_counted(s: State) -> bool:
    """Otherwise units are counted that no entry names."""
    return 0 <= s.units


def units_hold_their_fields_and_their_bitmaps(s: State) -> bool:
    """Otherwise a start that goes from unit to unit finds none behind one of them."""
    return s.size == UNIT * s.units + s.filters and 0 <= s.filters


def units_come_one_by_one(before: State, after: State) -> bool:
    """Otherwise a unit is passed over."""
    return after.units == before.units or after.units == before.units + 1


# What can be done, from whatever state.


INITIAL = State()
ACTIONS = (find_file, find_unit)
INVARIANTS = (units_are_counted, units_hold_their_fields_and_their_bitmaps)
STEP_PROPERTIES = (units_come_one_by_one,)
