"""The settings of a broker: its broker.conf, and the JSON files under `config/`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from gapless.traces.problems import Unreadable, os_problem, shown, side_file_problem
from gapless.traces.validation import UNIT_MS

SETTINGS = "broker.conf"
DELAY_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"  # docs/rocketmq.md#delay-levels
LARGEST_INT, LARGEST_TIME = 2**31 - 1, 2**62  # the latter of Java's longs, with room to add a time of now
DIGITS = 19  # of the largest number that Java has
PLAIN_LINE = re.compile(r"([\w.]+)[ \t]*=[ \t]*((?:[!-\[\]-~][ \t!-\[\]-~]*)?)", re.ASCII)
WRITTEN_BY_THE_BROKER = "rocketmqHome"  # stands in a broker.conf that a broker wrote back, see `rewritten`

OF_5 = 50_000  # of brokers, as a number, the first version that has timers, and some of the configuration files
READ_AT_START = {  # files in config/ that a start reads, and the first version that does
    "topics.json": 0, "consumerOffset.json": 0, "lmqConsumerOffset.json": 0, "subscriptionGroup.json": 0,
    "consumerFilter.json": 0, "delayOffset.json": 0, "topicQueueMapping.json": OF_5, "consumerOrderInfo.json": OF_5,
    "timermetrics": OF_5,
}  # fmt: skip

SETTING_NAME = re.compile(r"[A-Za-z]\w*")


def read_settings(config: Path) -> dict[str, str]:
    """Reads the settings in a broker.conf as Java does: Latin-1 with escapes. Raises Unreadable."""
    return _parsed(config, _content(config))


def read_broker_settings(config: Path) -> dict[str, str]:
    """Reads a file that must be a broker.conf: Java would read prose, JSON and logs too. Raises Unreadable."""
    content = _content(config)
    found = _parsed(config, content)
    if found and b"=" not in content and b":" not in content:
        raise Unreadable(f"{config}: none of its lines is NAME=VALUE, expected a broker.conf")
    if found and not any(map(SETTING_NAME.fullmatch, found)):
        raise Unreadable(f"{config}: no setting in it that a broker knows: is this the broker.conf?")
    return found


def _content(config: Path) -> bytes:
    """Reads the file once: it may be a pipe. Raises Unreadable."""
    try:
        return config.read_bytes()
    except OSError as error:
        raise Unreadable(os_problem(error)) from error


def _parsed(config: Path, content: bytes) -> dict[str, str]:
    """Parses the file's content. Raises Unreadable."""
    found = plain_properties(content)
    if found is not None:
        return found
    import javaproperties  # noqa: PLC0415 - it loads all that speaks HTTP

    try:
        return dict(javaproperties.loads(content))
    except ValueError as error:
        raise Unreadable(f"{config}: cannot be read as a properties file ({error})") from error


def plain_properties(content: bytes) -> dict[str, str] | None:
    """Parses a simple properties file of `key=value` and comments; None for any other content."""
    lines = [line.lstrip(" \t") for line in re.split(r"\r\n|\r|\n", content.decode("latin-1"))]
    found = [PLAIN_LINE.fullmatch(line) for line in lines if line and line[0] not in "#!"]
    return {line[1]: line[2] for line in found if line} if all(found) else None


def is_on(settings: Mapping[str, str], name: str, otherwise: bool = False) -> bool:  # noqa: FBT001, FBT002 - as `get`
    """Returns a boolean setting, or `otherwise` if it is not set.

    Only `true` is on, in letters of any case. Any other text is off: `yes`, `1`, a blank behind it. Source:
    docs/rocketmq.md#settings.
    """
    return settings[name].lower() == "true" if name in settings else otherwise


def is_slave(settings: Mapping[str, str]) -> bool:
    """True if settings may be those of a slave: by its role, or by its number, which is 0 for a master.

    Brokers of version 5 accept the name of a role with a blank behind it; older ones use their default.
    """
    number = number_set(settings, "brokerId", least=-LARGEST_TIME, most=LARGEST_TIME)
    return number != 0 or settings.get("brokerRole", "").strip() == "SLAVE"


def number_set(
    settings: Mapping[str, str], name: str, otherwise: int = 0, *, least: int = 0, most: int = LARGEST_INT
) -> int:
    """Returns a numeric setting, or the broker's default if it is not set: 0 is a number like any other.

    A broker passes over what Java does not read as a number: one with a blank behind it, or larger than its type.
    `least`, `most`: what lies beyond them is no number that could be meant here. Source: docs/rocketmq.md#settings.
    """
    value = settings.get(name, "")
    digits = value[1:] if value.startswith(("+", "-")) else value
    if not digits.isdecimal() or len(digits) > DIGITS:
        return otherwise
    found = int(value)
    return found if least <= found <= most else otherwise


def rewritten(settings: Mapping[str, str]) -> bool:
    """True if the broker wrote the file itself, after a setting was changed at run time.

    Source: docs/rocketmq.md#settings-at-run-time.
    """
    return WRITTEN_BY_THE_BROKER in settings


def length_set(settings: Mapping[str, str], name: str) -> int:
    """Returns the length that a setting gives files; 0 where files may be older, for it was changed at run time."""
    return 0 if rewritten(settings) else number_set(settings, name)


def owner(settings: Mapping[str, str]) -> str:
    """The name of the broker and of its cluster, as far as the settings have them."""
    parts = (("broker", "brokerName"), ("cluster", "brokerClusterName"))
    return ", ".join(f"{what} {shown(settings[name])}" for what, name in parts if settings.get(name))


def delays(levels: str) -> tuple[int, ...]:
    """Returns milliseconds per delay level, from a text such as "1s 5s 10s". Raises Unreadable."""
    try:
        return tuple(int(level[:-1]) * UNIT_MS[level[-1]] for level in levels.split())
    except (ValueError, KeyError) as error:
        raise Unreadable(
            f"messageDelayLevel = {levels!r}: expected numbers with s, m, h or d, as in {DELAY_LEVELS!r}"
        ) from error


def read_json(path: Path) -> dict[str, object]:
    """Reads a config file of the broker: JSON with fastjson's unquoted integer keys. Raises Unreadable."""
    try:
        content = _loaded(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Unreadable(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise Unreadable(
            f"{path}: not JSON ({error}), and no {path.name}.bak that is, to which the broker would fall back; "
            "copy the files again, or check without them"
        ) from error
    if not isinstance(content, dict):
        raise Unreadable(f"{path}: expected a JSON object")
    return content


@lru_cache(maxsize=8)  # several callers read the same file, which may have very many topics; the result is not modified
def _loaded(text: str) -> object:
    found: object = json.loads(quoted(text))
    return found


def is_there(path: Path) -> bool:
    """True if a broker reads this file: it exists, or its older version can be read.

    A broker that is killed while it writes a file may leave the older version alone (docs/rocketmq.md#config).
    """
    if path.is_file() or path.exists():
        return path.is_file()
    try:
        return bool(read_json(path.with_name(f"{path.name}.bak")))
    except Unreadable:
        return False


def read_json_or_older(path: Path, notes: list[str]) -> tuple[dict[str, object], bool]:
    """Reads a JSON file, or its older version, as the broker does; True for the older version.

    Raises Unreadable if neither can be read.
    """
    try:
        return read_json(path), False
    except Unreadable:
        older = path.with_name(f"{path.name}.bak")
        try:
            content = read_json(older)
        except Unreadable:
            content = {}
        if not content:
            raise
        how = "broken" if path.exists() else "not there"
        notes.append(f"{path.parent.name}/{path.name} is {how}: {older.name} is used, as the broker would do")
        return content, True


def quoted(text: str) -> str:
    """Rewrites fastjson's `{0:5}` as `{"0":5}`; strings are copied unchanged."""
    if "\\" not in text and "\0" not in text:
        # No string holds a quotation mark: all that lies outside of strings is seen at once, as one text.
        parts = text.split('"')
        outside = re.sub(r"([{,]\s*)(-?\d+)(?=\s*:)", "\\1\0\\2\0", '"'.join(parts[::2]))
        parts[::2] = outside.split('"')
        return '"'.join(parts).replace("\0", '"')
    pattern = re.compile(r'("(?:[^"\\]|\\.)*")|([{,]\s*)(-?\d+)(?=\s*:)')
    return pattern.sub(lambda m: m[1] if m[1] is not None else f'{m[2]}"{m[3]}"', text)


def store_settings(path: Path, config: Path | None, notes: list[str]) -> dict[str, str]:
    """The settings in `config`, or in a broker.conf next to the store; a note names the file, and counts them.

    One in a conf/ next to the store is that of this store only if it names it: a broker's home has one, whose broker
    may write elsewhere. One that was found and cannot be read is noted, and not used. Raises Unreadable for `config`.
    """
    if config is not None:
        try:
            settings = read_broker_settings(config)
        except Unreadable as problem:
            raise side_file_problem("settings", config, problem) from problem
        notes.append(f"settings from {shown(config)} ({len(settings):,} read)")
        return settings
    for name in (SETTINGS, f"conf/{SETTINGS}"):
        if (path.parent / name).is_file():
            return _settings_next_to(path, name, notes)
    return {}


def _settings_next_to(path: Path, name: str, notes: list[str]) -> dict[str, str]:
    """The settings in the file `name` next to the store, with a note about it; none if they are not of this store."""
    file = path.parent / name
    try:
        settings = read_broker_settings(file)
    except Unreadable as problem:
        reason = str(side_file_problem("settings", file, problem)).partition(": unreadable: ")[2]
        notes.append(f"{name} next to the store is not used, so rules that need settings are not checked: {reason}")
        return {}
    if name != SETTINGS and not _is_root(path, settings.get("storePathRootDir", "")):
        notes.append(
            f"{name} next to the store is not used, because its storePathRootDir names another store: "
            f"--config {shown(file)} uses it"
        )
        return {}
    which = ", which names it" if name != SETTINGS else ""
    notes.append(f"settings from {name} next to the store{which} ({len(settings):,} read)")
    return settings


def _is_root(path: Path, root: str) -> bool:
    """True if settings name this folder as the store's."""
    return bool(root.strip()) and os.path.realpath(root.strip()) == os.path.realpath(path)
