"""One start of a broker on the files that are there: what it maps, what it reads, and what it does without.

A start lists a few folders and maps every file in them, reads each configuration file or the backup of it, and compares
the lengths of files with its settings. What it does not expect either stops it or is passed over,
and then its content is gone. Versions differ.

Source: docs/rocketmq.md#start.
"""

from dataclasses import dataclass
from enum import IntEnum

from gapless.spec.language import assume, replace, require

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


INITIAL = State()
ACTIONS = (open, map_file, compare_length, read_config, read_levels, read_wheel)
INVARIANTS = (a_broker_that_starts_is_known,)
STEP_PROPERTIES = ()
