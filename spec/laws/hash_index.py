"""Laws of `hash_index`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import hash_index
from gapless.spec.hash_index import Item, Slot, State
from gapless.spec.language import Position, accepts, implies


def an_item_is_taken_if_it_is_what_its_record_says(
    s: State, slot: Slot, previous: Item, position: Position, owned: bool, timely: bool
) -> bool:
    """Otherwise a whole index is called broken, or keys lead to other messages."""
    right = owned and timely and previous == s.heads[slot] and s.last <= position
    there = 0 < s.slots and 0 <= slot and slot < s.slots
    return implies(there, accepts(hash_index.put, s, slot, previous, position, owned, timely) == right)


def _found(s: State, slot: Slot, previous: Item, position: Position, head: Item) -> State:
    return hash_index.find_slot(hash_index.put(s, slot, previous, position, True, True), slot, head)  # noqa: FBT003 - an event's flags


def a_key_is_found_from_its_slot(s: State, slot: Slot, position: Position, head: Item) -> bool:
    """Otherwise the newest message of a key is not found."""
    there = 0 < s.slots and 0 <= slot and slot < s.slots and s.last <= position
    return implies(there, accepts(_found, s, slot, s.heads[slot], position, head) == (head == s.items))


def a_header_is_taken_if_it_is_that_of_its_items(
    s: State, used: int, items: Item, first: Position, last: Position, timely: bool
) -> bool:
    """Otherwise a whole index is called broken, or a wrong header misleads the broker."""
    right = used == s.used and items == s.items and first == s.first and last == s.last and timely
    return accepts(hash_index.find_header, s, used, items, first, last, timely) == right


def what_cannot_be_looked_up_is_noticed(s: State, position: Position, found: bool) -> bool:
    """Otherwise the message is not found by its key."""
    return accepts(hash_index.look_up, s, position, found) == found


def a_file_is_found_once_and_has_slots(s: State, slots: int) -> bool:
    """Otherwise two files are taken for one, or no key leads anywhere."""
    return accepts(hash_index.open, s, slots) == (s.slots == 0 and 0 < slots)


def _headed(s: State, slot: Slot, position: Position, first: Position) -> State:
    one = hash_index.put(s, slot, s.heads[slot], position, True, True)  # noqa: FBT003 - an event's flags
    return hash_index.find_header(one, one.used, one.items, first, position, True)  # noqa: FBT003 - an event's flags


def a_header_names_the_first_item_of_all(s: State, slot: Slot, position: Position, first: Position) -> bool:
    """Otherwise the file expires too early, or never."""
    there = 0 < s.slots and 0 <= slot and slot < s.slots and s.last <= position
    right = first == (position if s.items == 1 else s.first)
    return implies(there, accepts(_headed, s, slot, position, first) == right)


ENABLED = (
    an_item_is_taken_if_it_is_what_its_record_says,
    a_key_is_found_from_its_slot,
    a_header_is_taken_if_it_is_that_of_its_items,
    what_cannot_be_looked_up_is_noticed,
    a_file_is_found_once_and_has_slots,
    a_header_names_the_first_item_of_all,
)
