"""Laws of `startup`: what is enabled, from any state in which its invariants hold."""

from gapless.spec import startup
from gapless.spec.language import accepts, implies
from gapless.spec.startup import FIVE, OLDEST, ConfigFile, State


def a_known_broker_may_start_on_any_store(s: State, version: int) -> bool:
    """Otherwise an upgrade cannot be judged, or a start of which nothing is known is."""
    return accepts(startup.open, s, version) == (OLDEST <= version)


def a_start_maps_numbered_files_of_full_length(s: State, folder: bool, numbered: bool, last: bool, full: int) -> bool:
    """Otherwise a broker that starts is reported as not starting, or the other way round."""
    expected = (s.version != 0 and numbered) or (FIVE <= s.version and (folder or (last and full == 0)))
    return accepts(startup.map_file, s, folder, numbered, last, full, full) == expected


def a_file_of_another_length_stops_a_start(s: State, numbered: bool, last: bool, more: int, full: int) -> bool:
    """Otherwise a broker that does not start is reported as starting."""
    deleted = FIVE <= s.version and last and full + more == 0
    return implies(more != 0, accepts(startup.map_file, s, False, numbered, last, full + more, full) == deleted)  # noqa: FBT003


def only_brokers_of_version_5_pass_over_folders(s: State, numbered: bool, last: bool, more: int, full: int) -> bool:
    """Otherwise a broker that does not start is reported as starting, or the other way round."""
    taken = accepts(startup.map_file, s, True, numbered, last, full + more, full)  # noqa: FBT003 - an event's flags
    return implies(more != 0, taken == (FIVE <= s.version))


def a_start_needs_the_length_that_files_have(s: State, length: int, full: int) -> bool:
    """Otherwise a setting that stops a start is passed over, or one that does not is reported."""
    return accepts(startup.compare_length, s, length, full) == (s.version != 0 and length == full)


def a_start_takes_a_backup_that_can_be_read(s: State, file: ConfigFile, backup: ConfigFile, needed: bool) -> bool:
    """Otherwise a broker that falls back is reported as not starting, or a loss as no loss."""
    whole = file == ConfigFile.WHOLE or backup == ConfigFile.WHOLE
    fresh = file == ConfigFile.ABSENT and backup != ConfigFile.BROKEN and not needed
    return accepts(startup.read_config, s, file, backup, needed) == (s.version != 0 and (whole or fresh))


def a_start_needs_the_levels_of_messages_that_wait(s: State, level: int, levels: int) -> bool:
    """Otherwise messages that are never delivered are passed over, or such as will be are reported."""
    return accepts(startup.read_levels, s, level, levels) == (s.version != 0 and level <= levels)


def a_start_takes_a_wheel_with_all_its_slots_or_none(s: State, length: int, full: int) -> bool:
    """Otherwise a broker that starts is reported as not starting, or the other way round."""
    return accepts(startup.read_wheel, s, length, full) == (s.version != 0 and (length == 0 or length == full))


def _mapped(s: State, version: int, numbered: bool, length: int, full: int) -> State:
    return startup.map_file(startup.open(s, version), False, numbered, False, length, full)  # noqa: FBT003 - an event's flags


def every_broker_maps_numbered_files_of_full_length(
    s: State, version: int, numbered: bool, length: int, full: int
) -> bool:
    """Otherwise a start is judged by the rules of another version."""
    taken = accepts(_mapped, s, version, numbered, length, full)
    return implies(OLDEST <= version, taken == (numbered and length == full))


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
