"""Losses that a simulated disk may have, and those that it may not; faults on demand."""

import errno
import random
from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.properties.simulation.choices import Choices, every_choice
from gapless.properties.simulation.simulated_disk import PowerLost, SimulatedDisk, SimulatedFile

PAGE, SECTOR = 32, 8  # small, so that a file of a few pages has every kind of damage

CHOICES = st.lists(st.integers(0, 3), max_size=40)
"""For a disk: where there are fewer ways than the number says, the last of them."""


def small_disk(*, capacity: int | None = None, lying: bool = False) -> SimulatedDisk:
    return SimulatedDisk(page=PAGE, sector=SECTOR, capacity=capacity, lying=lying)


def old_and_new(pages: int = 2) -> tuple[SimulatedDisk, SimulatedFile]:
    """A disk with one file: on the device all 1, in the cache all 2."""
    disk = small_disk()
    file = disk.create("file", pages * PAGE)
    file.data[:] = 1
    file.sync()
    file.data[:] = 2
    return disk, file


# --- What a loss of power leaves -----------------------------------------------------------------------------


def test_every_mix_of_old_and_new_sectors_may_be_found_and_nothing_else() -> None:
    """Torn and reordered: two pages of two sectors are sixteen disks."""
    disk = SimulatedDisk(page=16, sector=8)
    file = disk.create("file", 32)
    file.data[:] = 1
    file.sync()
    file.data[:] = 2
    found = {disk.crash(choose).files()["file"] for choose in every_choice()}
    assert found == {b"".join(bytes([value]) * 8 for value in values) for values in product((1, 2), repeat=4)}


def test_a_torn_page_is_reported_page_by_page_and_files_up_to_a_sector() -> None:
    """Meanings of choices: 0 old, 1 new, 2 up to a sector, 3 page by page; there 0 old, 1 new, 2 torn."""
    disk, _ = old_and_new(pages=2)
    places = {"": range(8), "1": (), "2 0": range(1, 8), "2 6": (7,), "3 0 1": range(4), "3 1 0": range(4, 8)}
    places |= {"3 2": (1, 2, 3, 4, 5, 6, 7), "3 2 13 1": (0,), "3 2 4 2 13": (1, 3, 4)}
    for text, lost in places.items():
        assert disk.crash(Choices.parse(text)).lost == ({"file": [8 * place for place in lost]} if lost else {}), text


def test_pages_that_the_kernel_wrote_out_by_itself_are_found() -> None:
    disk, file = old_and_new(pages=1)
    disk.write_back(Choices.of([1]))
    file.data[:] = 3
    assert disk.crash().files() == {"file": bytes([2]) * PAGE}
    file.sync()
    assert disk.crash().files() == {"file": bytes([3]) * PAGE}


def test_a_sync_takes_back_what_the_kernel_wrote_out_by_itself() -> None:
    disk, file = old_and_new(pages=1)
    disk.write_back(Choices.of([1]))
    file.data[:] = 1  # as it was synced before, and not as it is on the device
    file.sync()
    assert disk.crash().files() == {"file": bytes([1]) * PAGE}


def test_a_file_that_was_closed_cannot_be_synced() -> None:
    _, file = old_and_new()
    file.close()
    with pytest.raises(OSError, match="the file was closed") as closed:
        file.sync()
    assert closed.value.errno == errno.EBADF


def test_the_kernel_does_not_write_out_what_it_takes_for_clean() -> None:
    disk, file = old_and_new(pages=1)
    disk.fail(errno.EIO, verb="sync", forget=True)
    with pytest.raises(OSError, match="fault"):
        file.sync()
    disk.write_back(Choices.of([1]))
    assert disk.crash().files() == {"file": bytes([1]) * PAGE}


def test_what_is_under_way_when_a_process_ends_has_happened_or_has_not() -> None:
    disk = small_disk()
    disk.lose_power_at(1)
    with pytest.raises(PowerLost):
        disk.write("a", b"x")
    assert [disk.kill(choose).files() for choose in every_choice()] == [{}, {"a": b"x"}]


def test_a_file_that_was_found_is_lost_again_sector_by_sector() -> None:
    disk, _ = old_and_new()
    after = disk.crash(Choices.of([2, 3]))
    found = after.files()
    after.open("file", write=True).data[:] = 9
    assert after.crash().files() == found


def test_the_plainest_crash_loses_all_that_was_not_synced() -> None:
    disk, _ = old_and_new()
    after = disk.crash()
    assert after.files() == {"file": bytes([1]) * 2 * PAGE}
    assert after.lost == {"file": [0, 8, 16, 24, 32, 40, 48, 56]}


@given(st.data())
def test_a_sector_is_found_as_it_was_synced_or_as_it_was_seen_since(data: st.DataObject) -> None:
    """The model: the possible contents of each sector of each file. After a sync there is one answer."""
    disk = small_disk()
    files = {name: disk.create(name, length) for name, length in (("a", 3 * PAGE), ("b/c", 2 * PAGE - 5))}
    may_be = {name: [bytes(file.data)] for name, file in files.items()}  # the contents of which sectors may be a mix
    choose = Choices.of(data.draw(CHOICES))
    for _ in range(data.draw(st.integers(1, 8))):
        name = data.draw(st.sampled_from(sorted(files)))
        file = files[name]
        match data.draw(st.sampled_from(["write", "write", "sync", "write back"])):
            case "write":
                at = data.draw(st.integers(0, len(file.data) - 1))
                file.data[at : at + data.draw(st.integers(1, 40))] = data.draw(st.integers(0, 9))
            case "sync":
                file.sync()
                may_be[name] = [bytes(file.data)]
            case _:
                disk.write_back(lambda ways: choose_at_most(choose, ways))
                for other, content in files.items():
                    may_be[other].append(bytes(content.data))
    for name, file in files.items():
        may_be[name].append(bytes(file.data))
    after = disk.crash(lambda ways: choose_at_most(choose, ways))
    for name, left in after.files().items():
        for at in range(0, len(left), SECTOR):
            assert left[at : at + SECTOR] in {seen[at : at + SECTOR] for seen in may_be[name]}
        assert (name in after.lost) == (left != bytes(files[name].data))
    assert after.crash(lambda ways: ways - 1).files() == after.files(), "what is found once is found again"


def choose_at_most(choose: Choices, ways: int) -> int:
    return min(choose(max(ways, 4)), ways - 1)


def test_what_was_written_while_a_sync_was_under_way_may_be_there_and_may_not() -> None:
    disk, file = old_and_new()
    disk.lose_power_at(disk.operations + 1)
    with pytest.raises(PowerLost, match="operation 3, sync file"):
        file.sync()
    file.data[:] = 3  # by a process that does not know yet: it is never read
    found = {value for choose in every_choice() for value in disk.crash(choose).files()["file"][:SECTOR]}
    assert found == {1, 2}


def test_after_the_power_is_lost_nothing_answers() -> None:
    disk, file = old_and_new()
    disk.lock()
    disk.lose_power_at(3)
    with pytest.raises(PowerLost):
        disk.write("abort", b"")
    uses: list[Callable[[], object]] = [
        file.sync,
        disk.lock,
        lambda: disk.names(""),
        lambda: disk.folders(""),
        lambda: disk.create("other", 1),
        lambda: disk.open("file", write=False),
        lambda: disk.delete("file"),
        lambda: disk.read("file"),
        lambda: disk.write("other", b""),
    ]
    for use in uses:
        with pytest.raises(PowerLost, match="operation 3, write abort"):
            use()
    file.close()
    disk.unlock()
    disk.crash().lock()


def outcomes(disk: SimulatedDisk) -> set[tuple[tuple[tuple[str, bytes], ...], tuple[str, ...]]]:
    """Return every disk that may be found: its files, and its folders."""
    found = [disk.crash(choose) for choose in every_choice()]
    return {(tuple(after.files().items()), tuple(after.folders(""))) for after in found}


def test_a_create_that_did_not_return_leaves_no_file_an_empty_one_or_a_whole_one() -> None:
    disk = small_disk()
    disk.lose_power_at(1)
    with pytest.raises(PowerLost):
        disk.create("a/b", 3)
    assert outcomes(disk) == {
        ((), ()),
        ((), ("a",)),
        ((("a/b", b""),), ("a",)),
        ((("a/b", b"\0\0\0"),), ("a",)),
    }


def test_a_file_whose_name_is_not_durable_may_be_gone_until_it_is_synced() -> None:
    disk = small_disk()
    file = disk.create("a/b", 3, durable=False)
    file.data[0] = 7
    assert outcomes(disk) == {
        ((), ()),
        ((), ("a",)),
        ((("a/b", b""),), ("a",)),
        ((("a/b", b"\0\0\0"),), ("a",)),
        ((("a/b", b"\7\0\0"),), ("a",)),
    }
    found = disk.kill()
    assert found.files() == {"a/b": b"\7\0\0"}
    assert found.crash().files() == {}, "a reader that finds the file does not know that its name is durable"
    found.open("a/b", write=True).sync()
    assert found.crash().files() == {"a/b": b"\7\0\0"}


def test_a_delete_that_did_not_return_has_happened_or_has_not() -> None:
    disk = small_disk()
    disk.write("a/b", b"x")
    disk.lose_power_at(2)
    with pytest.raises(PowerLost):
        disk.delete("a/b")
    assert outcomes(disk) == {((("a/b", b"x"),), ("a",)), ((), ("a",)), ((), ())}


def test_a_write_that_did_not_return_leaves_the_old_or_the_new() -> None:
    disk = small_disk()
    disk.write("a", b"old")
    disk.lose_power_at(2)
    with pytest.raises(PowerLost):
        disk.write("a", b"newer")
    assert outcomes(disk) == {((("a", b"old"),), ()), ((("a", b"newer"),), ())}


def test_what_returned_is_found() -> None:
    disk = small_disk()
    disk.create("a/b", 3)
    disk.write("c", b"x")
    disk.write("d", b"y")
    disk.delete("d")
    assert outcomes(disk) == {((("c", b"x"), ("a/b", b"\0\0\0")), ("a",))}


def test_worlds_that_were_found_share_nothing() -> None:
    disk, file = old_and_new()
    disk.lose_power_at(3)
    with pytest.raises(PowerLost):
        disk.create("new", 4)
    first, second = (disk.crash(Choices.of([1, 2])) for _ in range(2))
    assert first.files() == second.files() == {"file": bytes([2]) * 2 * PAGE, "new": b"\0\0\0\0"}
    for path in first.files():
        first.open(path, write=True).data[:] = 7
    assert second.files()["new"] == b"\0\0\0\0"
    assert bytes(file.data) == second.files()["file"]


def test_the_end_of_a_process_loses_nothing_that_it_wrote() -> None:
    disk, _ = old_and_new()
    after = disk.kill()
    assert after.files() == disk.files()
    assert after.crash().files() == {"file": bytes([1]) * 2 * PAGE}, "but it is no more durable than it was"


def test_one_run_can_be_crashed_in_the_midst_of_every_operation() -> None:
    disk = small_disk()
    found: list[tuple[str, dict[str, bytes]]] = []
    disk.before_each = lambda: found.append((disk.last, disk.crash(lambda ways: ways - 1).files()))
    file = disk.create("a", 1)
    file.data[0] = 5
    file.sync()
    disk.delete("a")
    assert found == [
        ("operation 1, create a", {"a": b"\0"}),
        ("operation 2, sync a", {"a": b"\5"}),
        ("operation 3, delete a", {}),
    ]


def test_the_same_choices_leave_the_same_disk_and_choices_are_text() -> None:
    disk, _ = old_and_new(pages=6)
    for seed in range(50):
        choices = Choices(random.Random(seed).randrange)
        after = disk.crash(choices)
        again = disk.crash(Choices.parse(str(choices)))
        assert (after.files(), after.lost) == (again.files(), again.lost)
    assert str(Choices.parse("")) == ""


@pytest.mark.parametrize("text", ["1 two", "-1", "1.5"])
def test_what_are_no_choices_is_stated(text: str) -> None:
    with pytest.raises(ValueError, match="choices are numbers with spaces between, not"):
        Choices.parse(text)


def test_choices_of_another_world_are_refused() -> None:
    with pytest.raises(ValueError, match="choice 1 is 9, but there are only 4 ways here"):
        old_and_new()[0].crash(Choices.parse("9"))


# --- Faults on demand ----------------------------------------------------------------------------------------


def test_after_a_sync_that_failed_the_kernel_forgets_and_the_next_one_succeeds_without_the_bytes() -> None:
    disk, file = old_and_new()
    disk.fail(errno.EIO, verb="sync", forget=True)
    with pytest.raises(OSError, match=r"a fault that was asked for") as failed:
        file.sync()
    assert failed.value.errno == errno.EIO
    file.data[PAGE] = 9  # the second page is dirty again; the first is not
    file.sync()
    assert bytes(file.data[:2]) == bytes([2, 2]), "processes see what they wrote"
    assert disk.crash().files()["file"] == bytes([1]) * PAGE + bytes([9]) + bytes([2]) * (PAGE - 1)


def test_a_sync_that_failed_and_was_not_forgotten_can_be_repeated() -> None:
    disk, file = old_and_new()
    disk.fail(errno.EIO, at=4)
    disk.write("other", b"")
    with pytest.raises(OSError, match="fault"):
        file.sync()
    disk.delete("other")
    assert disk.crash().files()["file"] == bytes([1]) * 2 * PAGE
    file.sync()
    assert disk.crash().files()["file"] == bytes([2]) * 2 * PAGE


def test_a_disk_that_lies_has_synced_nothing() -> None:
    disk = small_disk(lying=True)
    file = disk.create("file", 1)
    file.data[0] = 1
    file.sync()
    assert disk.crash().files() == {"file": b"\0"}
    assert disk.crash().lying


def test_a_disk_is_full_when_its_files_are_as_long_as_it() -> None:
    disk = small_disk(capacity=100)
    disk.create("a", 60)
    disk.create("b", 40)
    for use in (lambda: disk.create("c", 1), lambda: disk.write("d", b"x")):
        with pytest.raises(OSError, match="the disk holds 100 bytes") as full:
            use()
        assert full.value.errno == errno.ENOSPC
    assert disk.files().keys() == {"a", "b"}
    after = disk.crash()
    for then in (disk, after):
        then.delete("b")
        then.create("c", 40)
        with pytest.raises(OSError, match="the disk holds 100 bytes"):
            then.create("d", 1)


def test_a_fault_meets_the_uses_that_were_named_and_no_others() -> None:
    disk = small_disk()
    disk.write("commitlog/0", b"x")
    disk.write("abort", b"")
    disk.fail(errno.EIO, verb="read", path="commitlog/*", times=2)
    disk.fail(errno.EACCES, verb="open")
    assert disk.read("abort") == b""
    for _ in range(2):
        with pytest.raises(OSError, match="commitlog/0") as failed:
            disk.read("commitlog/0")
        assert failed.value.errno == errno.EIO
    assert disk.read("commitlog/0") == b"x"
    disk.heal()
    disk.open("abort", write=True)


def test_what_failed_may_yet_be_found_until_it_succeeds() -> None:
    disk = small_disk()
    disk.fail(errno.EIO, verb="create", path="a")
    with pytest.raises(OSError, match="fault"):
        disk.create("a", 1)
    assert disk.read("a") is None
    assert outcomes(disk) == outcomes(disk.kill()) == {((), ()), ((("a", b""),), ()), ((("a", b"\0"),), ())}
    disk.delete("a")
    assert outcomes(disk) == {((), ())}


def test_power_is_not_lost_in_the_past() -> None:
    disk, _ = old_and_new()
    with pytest.raises(ValueError, match="operation 2 is past: there were 2"):
        disk.lose_power_at(2)


def test_sectors_make_pages() -> None:
    with pytest.raises(ValueError, match="a page one of sectors, not 12 and 24"):
        SimulatedDisk(page=24, sector=12)
