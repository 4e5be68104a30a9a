"""One start of a broker on the files that are there: what it maps, what it reads, and what it does without.

A start lists a few folders and maps every file in them, reads each configuration file or the backup of it, and compares
the lengths of files with its settings. What it does not expect either stops it or is passed over,
and then its content is gone. Versions differ.

Source: docs/rocketmq.md#start.
"""

from dataclasses import dataclass
from enum import IntEnum

from gapless.spec.language import accepts, assume, implies, replace, require

OLDEST = 40_000  # the least version that is followed, as a number: 4.9.7 is 40,907
FIVE = 50_000  # from version 5 on a start passes over folders, and deletes an empty file that comes last


class ConfigFile(IntEnum):
    """The content of a configuration file."""

    ABSENT = 0  # there is no such file
    EMPTY = 1  # no byte is in it
    BROKEN = 2  # it has bytes that the broker cannot read
    WHOLE = 3


@dataclass(frozen=True, slots=True)
class State:
    """The broker that started last."""

    version: int = 0  # as a number; 0 until one starts


def open(s: State, version: int) -> State:  # noqa: A001 - the step's name in every trace.
    """A broker of this version starts, perhaps after another one stopped."""
    require(OLDEST <= version, "version-of-a-start-is-known",
        because="the version of a start is known", otherwise="files are judged by the rules of no broker")
    return replace(s, version=version)


def map_file(s: State, folder: bool, numbered: bool, last: bool, length: int, full: int) -> State:
    """The start finds a file in a folder in which every file is to be mapped.

    `folder`: it is a folder itself · `numbered`: it is called by a number · `last`: no name comes behind its name ·
    `length`: its bytes · `full`: the bytes of each file that belongs there.

    Source: docs/rocketmq.md#start-mapped; MappedFileQueue.doLoad, DefaultMappedFile.init.
    """
    assume(s.version != 0, because="a broker starts")
    modern = FIVE <= s.version
    passed_over = modern and (folder or (last and length == 0))
    require(passed_over or length == full, "mapped-file-has-its-full-length",
        because="a file that a start maps has its full length", otherwise="the broker does not start")
    require(passed_over or numbered, "mapped-file-is-called-by-a-number",
        because="a file that a start maps is called by a number", otherwise="the broker does not start")
    return s


def compare_length(s: State, length: int, full: int) -> State:
    """Files of one kind have `length` bytes each, and the settings of the start say `full`.

    Source: docs/rocketmq.md#start-mapped; MappedFileQueue.doLoad.
    """
    assume(s.version != 0, because="a broker starts")
    require(length == full, "settings-have-the-length-of-the-files",
        because="the settings of a start have the length of the files that are there",
        otherwise="the broker does not start")
    return s


def read_config(s: State, file: ConfigFile, backup: ConfigFile, needed: bool) -> State:
    """The start reads a configuration file, or the backup of it.

    `needed`: other files of the store show that there was one.

    Source: docs/rocketmq.md#start-config; ConfigManager.load, loadBak.
    """
    assume(s.version != 0, because="a broker starts")
    require(file == ConfigFile.WHOLE or backup != ConfigFile.BROKEN, "config-file-or-its-backup-can-be-read",
        because="a configuration file can be read, or its backup can", otherwise="the broker does not start")
    fresh = file == ConfigFile.ABSENT and not needed
    require(file == ConfigFile.WHOLE or backup == ConfigFile.WHOLE or fresh,
        "config-file-without-content-has-a-backup",
        because="a configuration file that is lost or cannot be read has a backup that can",
        otherwise="the broker starts without the content of the file")
    return s


def read_levels(s: State, level: int, levels: int) -> State:
    """Messages of delay level `level` wait for their time, and settings name `levels` levels.

    Source: docs/rocketmq.md#start-levels; ScheduleMessageService.parseDelayLevel, start.
    """
    assume(s.version != 0, because="a broker starts")
    require(level <= levels, "settings-have-the-level-of-messages-that-wait",
        because="the settings of a start have the level of every message that waits",
        otherwise="these messages are never delivered while the setting stands")
    return s


def read_wheel(s: State, length: int, full: int) -> State:
    """The start maps the timer wheel: `length` bytes, where all its slots have `full`. An empty one is made again.

    Source: docs/rocketmq.md#start-wheel; TimerWheel.
    """
    assume(s.version != 0, because="a broker starts")
    require(length == 0 or length == full, "timer-wheel-has-all-its-slots",
        because="the timer wheel has all its slots", otherwise="the broker does not start")
    return s


def a_broker_that_starts_is_known(s: State) -> bool:
    """Otherwise files are judged by the rules of no broker."""
    return s.version == 0 or OLDEST <= s.version


# What can be done, from whatever state.


def a_known_broker_may_start_on_any_store(s: State, version: int) -> bool:
    """Otherwise an upgrade cannot be judged, or a start of which nothing is known is."""
    return accepts(open, s, version) == (OLDEST <= version)


def a_start_maps_numbered_files_of_full_length(s: State, folder: bool, numbered: bool, last: bool, full: int) -> bool:
    """Otherwise a broker that starts is reported as not starting, or the other way round."""
    expected = (s.version != 0 and numbered) or (FIVE <= s.version and (folder or (last and full == 0)))
    return accepts(map_file, s, folder, numbered, last, full, full) == expected


def a_file_of_another_length_stops_a_start(s: State, numbered: bool, last: bool, more: int, full: int) -> bool:
    """Otherwise a broker that does not start is reported as starting."""
    deleted = FIVE <= s.version and last and full + more == 0
    return implies(more != 0, accepts(map_file, s, False, numbered, last, full + more, full) == deleted)  # noqa: FBT003


def only_brokers_of_version_5_pass_over_folders(s: State, numbered: bool, last: bool, more: int, full: int) -> bool:
    """Otherwise a broker that does not start is reported as starting, or the other way round."""
    taken = accepts(map_file, s, True, numbered, last, full + more, full)  # noqa: FBT003 - an event's flags
    return implies(more != 0, taken == (FIVE <= s.version))


def a_start_needs_the_length_that_files_have(s: State, length: int, full: int) -> bool:
    """Otherwise a setting that stops a start is passed over, or one that does not is reported."""
    return accepts(compare_length, s, length, full) == (s.version != 0 and length == full)


def a_start_takes_a_backup_that_can_be_read(s: State, file: ConfigFile, backup: ConfigFile, needed: bool) -> bool:
    """Otherwise a broker that falls back is reported as not starting, or a loss as no loss."""
    whole = file == ConfigFile.WHOLE or backup == ConfigFile.WHOLE
    fresh = file == ConfigFile.ABSENT and backup != ConfigFile.BROKEN and not needed
    return accepts(read_config, s, file, backup, needed) == (s.version != 0 and (whole or fresh))


def a_start_needs_the_levels_of_messages_that_wait(s: State, level: int, levels: int) -> bool:
    """Otherwise messages that are never delivered are passed over, or such as will be are reported."""
    return accepts(read_levels, s, level, levels) == (s.version != 0 and level <= levels)


def a_start_takes_a_wheel_with_all_its_slots_or_none(s: State, length: int, full: int) -> bool:
    """Otherwise a broker that starts is reported as not starting, or the other way round."""
    return accepts(read_wheel, s, length, full) == (s.version != 0 and (length == 0 or length == full))


def _mapped(s: State, version: int, numbered: bool, length: int, full: int) -> State:
    return map_file(open(s, version), False, numbered, False, length, full)  # noqa: FBT003 - an event's flags


def every_broker_maps_numbered_files_of_full_length(
    s: State, version: int, numbered: bool, length: int, full: int
) -> bool:
    """Otherwise a start is judged by the rules of another version."""
    taken = accepts(_mapped, s, version, numbered, length, full)
    return implies(OLDEST <= version, taken == (numbered and length == full))


INITIAL = State()
ACTIONS = (open, map_file, compare_length, read_config, read_levels, read_wheel)
INVARIANTS = (a_broker_that_starts_is_known,)
STEP_PROPERTIES = ()
ENABLED = (
    a_known_broker_may_start_on_any_store,
    a_start_maps_numbered_files_of_full_length,
    a_file_of_another_length_stops_a_start,
    only_brokers_of_version_5_pass_over_folders,
    a_start_needs_the_length_that_files_have,
    a_start_takes_a_backup_that_can_be_read,
    a_start_needs_the_levels_of_messages_that_wait,
    a_start_takes_a_wheel_with_all_its_slots_or_none,
    every_broker_maps_numbered_files_of_full_length,
)
