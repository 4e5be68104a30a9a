"""Laws of `extension`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import extension
from gapless.spec.extension import State
from gapless.spec.language import Number, accepts


def a_unit_is_taken_if_it_is_what_its_entry_needs(
    s: State, number: Number, size: int, bitmap: int, room: int, whole: bool, timely: bool
) -> bool:
    """Otherwise a whole extension is called broken, or a broken one is not."""
    right = whole and timely and size == 20 + bitmap and 0 <= bitmap and 4 <= room
    return accepts(extension.find_unit, s, number, size, bitmap, room, whole, timely) == right


def a_file_has_neither_more_nor_less_than_its_bytes(s: State, more: int, full: int) -> bool:
    """Otherwise a broker that finds it refuses to start, or units are lost."""
    return accepts(extension.find_file, s, full + more, full) == (more == 0)


ENABLED = (a_unit_is_taken_if_it_is_what_its_entry_needs, a_file_has_neither_more_nor_less_than_its_bytes)
