"""One file of the hash index: every key of a record leads to an item, through the slot of its hash."""

from dataclasses import dataclass
from typing import NewType

from gapless.spec.language import Map, Position, assume, implies, replace, require

Slot = NewType("Slot", int)
"""A place in the table that begins a file: where the walk to an item begins, for every key whose hash leads there."""

Item = NewType("Item", int)
"""The number of an item in its file. The first is 1; 0 is none."""


@dataclass(frozen=True, slots=True)
class State:
    """The items of the file as far as they have been read, and for every slot the newest of its items."""

    slots: int = 0  # how many there are; 0 until the file is found
    items: Item = Item(0)  # exclusive end of the items (RocketMQ: indexCount)
    used: int = 0  # slots that have an item (RocketMQ: hashSlotCount)
    first: Position = Position(0)  # where the record of the first item lies; 0 without items
    last: Position = Position(0)  # where the record of the last item lies; 0 without items
    heads: Map[Slot, Item] = Map(Item(0))  # of slot n: the newest of its items; 0 where it has none


def open(s: State, slots: int) -> State:  # noqa: A001 - the step's name in every trace.
    """A file is found whose table has `slots` places.

    Source: docs/rocketmq.md#index.
    """
    require(s.slots == 0 and s.items == 0, "index-file-is-new",
        because="the index file is new", otherwise="two files are taken for one")
    require(0 < slots, "index-file-has-slots",
        because="the index file has slots", otherwise="no key leads anywhere")
    return replace(s, slots=slots, items=Item(1))


def put(s: State, slot: Slot, previous: Item, position: Position, owned: bool, timely: bool) -> State:
    """The next item: a key whose hash leads to `slot`, of the record at `position`; the item before it is `previous`.

    `owned` says that the hash is that of a key of the record; `timely`, that its time is that of the record. In a file
    of tiered storage, whose records lie in the logs of several queues and come in no order, each counts as lying at 0.

    Source: docs/rocketmq.md#index, docs/rocketmq-tiered.md#index; IndexFile.putKey.
    """
    assume(0 < s.slots and 0 <= slot and slot < s.slots, because="the remainder of a division is less than the divisor")
    require(owned, "item-has-the-hash-of-a-key-of-its-record",
        because="the item has the hash of a key of its record",
        otherwise="who looks a key up finds a message that does not have it, or none")
    require(s.last <= position, "items-come-in-the-order-of-the-log",
        because="items come in the order of the log", otherwise="records are taken for indexed that are not")
    require(previous == s.heads[slot], "item-leads-to-the-one-before-it",
        because="the item leads to the one before it in its slot",
        otherwise="older messages are not found by their keys, or a search never ends")
    require(timely, "item-has-the-time-of-its-record",
        because="the item has the time of its record",
        otherwise="who looks a key up in a stretch of time misses its message")
    return replace(
        s,
        items=Item(s.items + 1),
        used=s.used + 1 if s.heads[slot] == 0 else s.used,
        first=position if s.items == 1 else s.first,
        last=position,
        heads=s.heads.set(slot, s.items),
    )


def find_slot(s: State, slot: Slot, head: Item) -> State:
    """All items are read, and slot `slot` of the table names item `head`, or none if that is 0.

    Source: docs/rocketmq.md#index; IndexFile.selectPhyOffset.
    """
    require(head == s.heads[slot], "slot-leads-to-its-newest-item",
        because="the slot leads to its newest item",
        otherwise="messages are not found by their keys, or others are found in their place")
    return s


def find_header(s: State, used: int, items: Item, first: Position, last: Position, timely: bool) -> State:
    """All items are read, and the header has their count, the slots in use and the end records.

    `timely` says that its times are those of these records.

    Source: docs/rocketmq.md#index; IndexHeader.
    """
    require(used == s.used, "header-counts-the-slots-in-use",
        because="the header counts the slots in use", otherwise="who watches how full the index is is misled")
    require(items == s.items, "header-counts-the-items",
        because="the header counts the items",
        otherwise="the next item takes the place of another one, or a search walks where nothing was written")
    require(first == s.first, "header-names-the-first-record",
        because="the header names the first record of the file", otherwise="the file expires too early, or never")
    require(last == s.last, "header-names-the-last-record",
        because="the header names the last record of the file",
        otherwise="records are never indexed, for the broker takes them for indexed, or the file expires too early")
    require(timely, "header-has-the-times-of-its-records",
        because="the header has the times of its first and last record",
        otherwise="a search in a stretch of time passes over the file, or a start after a kill wrongly keeps it")
    return s


def look_up(s: State, position: Position, found: bool) -> State:
    """A key of the record at `position` is looked up; `found` says that an item with its hash leads to the record.

    Source: docs/rocketmq.md#index; IndexService.queryOffset.
    """
    require(found, "key-leads-to-its-record",
        because="the key leads to its record", otherwise="the message is not found by its key")
    return s


def items_are_counted(s: State) -> bool:
    """Otherwise items are overwritten, or read before they were written."""
    return 0 <= s.slots and implies(0 < s.slots, 1 <= s.items) and implies(s.slots == 0, s.items == 0)


def slots_in_use_have_items(s: State) -> bool:
    """Otherwise the header counts slots that were never used."""
    return 0 <= s.used and implies(1 <= s.items, s.used < s.items) and implies(s.items == 0, s.used == 0)


def a_slot_leads_to_an_item_of_the_file(s: State, slot: Slot) -> bool:
    """Otherwise a search reads what was never written."""
    there = 0 < s.heads[slot] and s.heads[slot] < s.items and 0 <= slot and slot < s.slots
    return s.heads[slot] == 0 or there


def two_slots_never_share_an_item(s: State, one: Slot, other: Slot) -> bool:
    """Otherwise a search finds messages of other keys, and walks in their chain."""
    return one == other or s.heads[one] == 0 or s.heads[one] != s.heads[other]


def the_first_record_lies_before_the_last(s: State) -> bool:
    """Otherwise the file's records are not those between its ends."""
    return s.first <= s.last and implies(s.items <= 1, s.first == 0 and s.last == 0)


def items_are_written_once(before: State, after: State) -> bool:
    """Otherwise an item is lost with the message that it leads to."""
    return implies(1 <= before.items, after.items == before.items or after.items == before.items + 1)


def items_follow_the_log(before: State, after: State) -> bool:
    """Otherwise the broker skips records that it takes for indexed."""
    return implies(1 < before.items, before.last <= after.last and before.first == after.first)


def a_slot_moves_on_to_the_next_item_only(before: State, after: State, slot: Slot) -> bool:
    """Otherwise a chain loses its newest items."""
    return after.heads[slot] == before.heads[slot] or after.heads[slot] == before.items


def a_slot_counts_from_its_first_item_on(before: State, after: State, slot: Slot) -> bool:
    """Otherwise who watches how full the index is is misled."""
    first = before.heads[slot] == 0 and after.heads[slot] != 0
    later = before.heads[slot] != 0 and after.heads[slot] != before.heads[slot]
    return implies(first, after.used == before.used + 1) and implies(later, after.used == before.used)


def the_table_never_changes_its_size(before: State, after: State) -> bool:
    """Otherwise every hash leads to another slot than before."""
    return implies(0 < before.slots, after.slots == before.slots)


# What can be done, from whatever state.


INITIAL = State()
ACTIONS = (open, put, find_slot, find_header, look_up)
INVARIANTS = (
    items_are_counted,
    slots_in_use_have_items,
    a_slot_leads_to_an_item_of_the_file,
    two_slots_never_share_an_item,
    the_first_record_lies_before_the_last,
)
STEP_PROPERTIES = (
    items_are_written_once,
    items_follow_the_log,
    a_slot_moves_on_to_the_next_item_only,
    a_slot_counts_from_its_first_item_on,
    the_table_never_changes_its_size,
)
