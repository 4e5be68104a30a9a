"""Explains hazards of the broker's next start: the place, the sentence, what the broker says, and the remedy."""

from __future__ import annotations

from collections.abc import Sequence

from gapless.spec.catalog import rule
from gapless.spec.startup import ConfigFile
from gapless.traces.problems import shown
from gapless.traces.report.values import Where
from gapless.traces.sources.rocketmq.joining.findings import Breach
from gapless.traces.sources.rocketmq.startup.start_places import StartPlace
from gapless.traces.sources.rocketmq.store.directory import StoreDirectory

NUMBER = rule("startup/mapped-file-is-called-by-a-number").id
LOST = rule("startup/config-file-without-content-has-a-backup").id
DOES = {
    LOST: ("starts without it", "start without it"),
    rule("startup/settings-have-the-level-of-messages-that-wait").id: ("never delivers them", "never deliver them"),
}
"""The predicate of one version, and of several, for each hazard with which they start."""
STATES = {
    ConfigFile.ABSENT: "is not there", ConfigFile.EMPTY: "is empty", ConfigFile.BROKEN: "cannot be read",
    ConfigFile.WHOLE: "is whole",
}  # fmt: skip
WITHOUT = {
    "topics.json": "every topic is unknown until it is created again: pulls of its queues fail with code 17",
    "consumerOffset.json": "every consumer group begins again where its settings say, and so does the check service",
    "lmqConsumerOffset.json": "every consumer group begins again where its settings say, and so does the check service",
    "subscriptionGroup.json": "settings of consumer groups are those by default",
    "consumerFilter.json": "filters by expression are unknown until consumers register again",
    "delayOffset.json": "every delay level begins again at its first message: delayed messages are delivered again",
    "topicQueueMapping.json": "static topics have no mapping of their queues",
    "consumerOrderInfo.json": "consumers in order may be handed messages again that they have not acknowledged",
    "timermetrics": "counts of timers begin again",
}
"""By configuration file, what becomes of a broker that starts without it."""


def place(_store: StoreDirectory, found: Breach) -> Where:
    """The file at which the start fails, or that it does without."""
    fails = StartPlace.of(found.detail)
    return Where(file=fails.file, offset=fails.offset)


def message(found: Breach) -> str:
    """Describes the hazard in one sentence without its end."""
    fails, args = StartPlace.of(found.detail), found.arguments
    if found.action == "compare_length":
        what = f"{fails.setting} is {args['full']:,}, and files such as {fails.file} have {args['length']:,} bytes"
    elif found.action == "read_config":
        file = fails.file.removesuffix(".bak")
        what = f"{file} {STATES[ConfigFile(args['file'])]}, and its backup {STATES[ConfigFile(args['backup'])]}"
    elif found.action == "read_levels":
        wait = f"messages of delay level {args['level']} wait for their time"
        what = f"{wait}, and messageDelayLevel names {args['levels']}"
    elif found.action == "read_wheel":
        what = f"{fails.file} is {args['length']:,} bytes long, and all its slots have {args['full']:,}"
    elif args["folder"]:
        what = f"{fails.file} is a folder among files that a start maps"
    elif args["numbered"]:
        what = f"{fails.file} is {args['length']:,} bytes long, and others of its kind {args['full']:,}"
    else:
        what = f"{fails.file} lies among files that a start maps, and is none of them"
    return f"{what}: {_versions(found, fails)}"


def _versions(found: Breach, fails: StartPlace) -> str:
    """Describes the versions that fail, and those that do not."""
    one, more = DOES.get(found.rule, ("does not start", "do not start"))
    does = one if len(fails.refused) == 1 else more
    others = f"; {_listed(fails.started)} start{'s' * (len(fails.started) == 1)}" if fails.started else ""
    return f"{_listed(fails.refused)} {does}{others}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def also(found: Breach) -> list[str]:
    """Returns what the broker says or does then, and what to do."""
    fails, args = StartPlace.of(found.detail), found.arguments
    file = shown(fails.file)
    if found.action == "read_config":
        return _of_config(found, fails)
    if found.action == "read_levels":
        return [
            f"Remedy: let messageDelayLevel name {args['level']} levels or more until these messages are delivered."
        ]
    if found.action == "read_wheel":
        says = f"java.lang.RuntimeException: Timer wheel length:{args['length']} != expected:{args['full']}"
        remedy = f"move {file} away: the start makes another one, of what the last two files of the timer log have"
        return [_says("broker.log", says), f"Remedy: {remedy}."]
    says = f"{file} {args['length']} length not matched message store config value, please check it manually"
    if found.action == "compare_length":
        remedy = f"set {fails.setting}={args['length']} before the start: files keep the length that they have"
        return [_says("store.log", says), f"Remedy: {remedy}."]
    if found.rule == NUMBER:
        says = f'java.lang.NumberFormatException: For input string: "{shown(fails.file.rpartition("/")[2])}"'
    if args["numbered"] and args["length"] and file.startswith("consumequeue/"):
        remedy = "move consumequeue/ away: the start writes all queues again, as far as the log has their messages"
        return [_says("store.log", says), f"Remedy: {remedy}."]
    return [_says("store.log", says), f"Remedy: move {file} out of the store."]


def _of_config(found: Breach, fails: StartPlace) -> list[str]:
    file = fails.file.removesuffix(".bak")
    name = file.rpartition("/")[2]
    without = f"the broker starts without it, and {WITHOUT[name]}"
    remedy = f"Remedy: put a copy of {file} back that can be read"
    if found.rule == LOST:
        return [f"Then {WITHOUT[name]}.", f"{remedy}."]
    says = _says("broker.log", f"load {file}.bak Failed, with a JSONException")
    return [says, f"{remedy}; where there is none, move it and its .bak away: {without}."]


def _says(where: str, what: str) -> str:
    return f"The broker says, in {where}: {what}."
