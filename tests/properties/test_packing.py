"""A packed state is read as it was written, and there is room for what did not fit."""

from gapless.properties.exploration.packing import PackedField, StateLayout


def packing(width: int = 70) -> StateLayout:
    """Two numbers and two Maps, which lie in more than one word."""
    return StateLayout(
        (PackedField.holding(0), PackedField.holding(-1)),
        (PackedField.holding(0), PackedField.holding(5)),
        -3,
        width,
        (False, False),
        (int,) * 4,
    )


def read_again(how: StateLayout, numbers: list[int], maps: list[dict[int, int]]) -> bool:
    """True if packing and unpacking returns the same."""
    words = how.packed(numbers, [lambda key, one=one: one.get(key, 5) for one in maps])  # type: ignore[misc]
    there, windows = how.unpacked(words)
    keys = range(how.origin, how.origin + how.width)
    return there == numbers and windows == [[one.get(key, 5) for key in keys] for one in maps]


def test_what_is_packed_is_read_again() -> None:
    how: StateLayout | None = packing()
    for field, value in ((0, 2**40), (1, -9), (2, 5), (3, -200), (0, -1)):
        assert how
        how = how.widened(field, value)
    assert how
    assert read_again(how, [2**40, -9], [{-3: 0, 66: 7, 13: 1}, {0: -200, 20: 5}])
    assert read_again(how, [-1, 6], [{}, {66: 55}])


def test_no_value_lies_in_two_words() -> None:
    how = packing().widened(2, 1000)
    assert how
    for bit, shift, _, _ in how.rows[2:].tolist():
        assert bit % (1 << shift) == 0
    for word, shift, _, mask in how.rows[:2].tolist():
        assert word < how.words
        assert shift + int(mask).bit_length() <= 64


def test_what_a_kind_needs_all_of_it_get() -> None:
    how = StateLayout(
        (PackedField.holding(0), PackedField.holding(0), PackedField.holding(0)), (), 0, 1, (), (str, str, int)
    )
    wider = how.widened(0, 9)
    assert wider
    assert [one.bits for one in wider.numbers] == [4, 4, 1]


def test_the_widest_field_has_a_mask_with_a_sign() -> None:
    widest = packing().widened(0, 2**60 - 1)
    assert widest
    widest = widest.widened(0, 1 - 2**60)
    assert widest
    assert int(widest.roomier().rows[0, 3]) == 2**62 - 1


def test_what_is_too_large_to_be_computed_with_has_no_room() -> None:
    assert packing().widened(0, 2**60) is None
