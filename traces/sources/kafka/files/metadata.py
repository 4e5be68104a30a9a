"""The cluster's metadata, from the log `__cluster_metadata` and its snapshots: topics, their settings, partitions.

The log begins at 0, or where a snapshot was taken; then settings that were changed before are not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gapless.traces.sources.kafka.files.directory import PartitionFiles, PartitionFolder
from gapless.traces.sources.kafka.files.fields import FieldReader, OutOfBounds, int32
from gapless.traces.sources.kafka.files.names import METADATA_SNAPSHOT, METADATA_TOPIC, PartitionName
from gapless.traces.sources.kafka.log.batches import Stop, chunks
from gapless.traces.sources.kafka.log.records import records

FRAME = 1
"""The version of the frame around a record: its type and version follow."""
BROKER, TOPIC, PARTITION, CONFIG, PARTITION_CHANGE, REMOVED_TOPIC, FEATURE, PRODUCER_IDS = 0, 2, 3, 4, 5, 9, 12, 15
OF_TOPIC, OF_BROKER = 2, 4
"""Kinds of resources that have settings."""
SAME_LEADER = -2
POLICY, COMPACT = "cleanup.policy", "compact"
COMPACTED = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", METADATA_TOPIC})
"""Topics that are compacted in every cluster; the cluster's own log has snapshots for it."""


@dataclass
class TopicSettings:
    """A topic of the cluster. `generations`: how often it was created · `was_compacted`: at any time."""

    id: str
    generations: int = 1
    is_removed: bool = False
    was_compacted: bool = False
    settings: dict[str, str] = field(default_factory=dict)


@dataclass
class PartitionState:
    """A partition, as the controller has it. `was_recovering`: a leader was elected that lacked records."""

    replicas: list[int]
    in_sync: list[int]
    leader: int
    epoch: int
    was_recovering: bool = False


@dataclass
class ClusterMetadata:
    """All that is read. `begins`: the log's first offset · `fault`: the reason for which something is left out.

    `starts`: the times at which brokers started · `started`: how often each of them did ·
    `defaults`: settings of all brokers; each of them may have others in a file of its own.
    """

    begins: int = 0
    topics: dict[str, TopicSettings] = field(default_factory=dict)
    partitions: dict[PartitionName, PartitionState] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    defaults: dict[str, str] = field(default_factory=dict)
    next_producer: int = -1
    starts: list[int] = field(default_factory=list)
    started: Counter[int] = field(default_factory=Counter)
    fault: str = ""

    def may_be_compacted(self, topic: str) -> bool:
        """True unless it is known that a topic never was: its whole history is there."""
        if topic in COMPACTED or self.begins > 0 or self.fault or topic not in self.topics:
            return True
        return self.topics[topic].was_compacted or COMPACT in self.defaults.get(f"log.{POLICY}", "")

    def is_compacted(self, topic: str) -> bool:
        """True if it is known that a topic is compacted, as of the end of the log."""
        if self.fault or topic not in self.topics or self.topics[topic].is_removed:
            return False
        default = self.defaults.get(f"log.{POLICY}", "")
        return topic in COMPACTED or COMPACT in self.topics[topic].settings.get(POLICY, default)


def cluster_metadata(folder: Path) -> ClusterMetadata | None:
    """Read the cluster's metadata from a data directory; None if its log is not there. Raises OSError."""
    path = folder / f"{METADATA_TOPIC}-0"
    if not path.is_dir():
        return None
    files = PartitionFolder(path, PartitionName(METADATA_TOPIC, 0)).files()
    found = ClusterMetadata(begins=files.segments[0].base if files.segments else 0)
    replay = _Replay(found)
    for file in _sources(path, files):
        _replay_file(file, replay)
    return found


def _sources(path: Path, files: PartitionFiles) -> Iterator[Path]:
    """The files to be read: the last snapshot that is no later than the log, and its segments."""
    begins = files.segments[0].base if files.segments else None
    matches = [(match, file) for file in path.iterdir() if (match := METADATA_SNAPSHOT.fullmatch(file.name))]
    numbered = [(int(match["number"]), int(match["epoch"]), file) for match, file in matches]
    if early := [one for one in numbered if begins is None or one[0] <= begins]:
        yield max(early)[2]
    yield from (segment.log for segment in files.segments)


def _replay_file(file: Path, replay: _Replay) -> None:
    for chunk in chunks(file):
        for columns in records(chunk):
            is_control = chunk.batches.is_control[columns.batch]
            for number in range(len(columns)):
                if not is_control[number] and (value := columns.value(number)) is not None:
                    replay.apply(value, int(columns.time[number]))
        if not chunk.batches.is_sound.all():
            replay.found.fault = f"{file.name} has a batch whose checksum is another one"
        elif chunk.stop not in {Stop.END, Stop.MORE, Stop.ZEROS}:
            replay.found.fault = f"{file.name} ends within a batch"


class _Replay:
    """Applies records, one after the other."""

    def __init__(self, found: ClusterMetadata) -> None:
        self.found = found
        self._names: dict[str, str] = {}  # of topics, by their ids
        self._early: dict[str, list[tuple[str, str | None]]] = {}  # settings of topics that come later: before 3.4
        self._time = -1
        self._verbs: dict[int, Callable[[FieldReader, int], None]] = {
            BROKER: self._broker,
            TOPIC: self._topic,
            PARTITION: self._partition,
            CONFIG: self._config,
            PARTITION_CHANGE: self._partition_change,
            REMOVED_TOPIC: self._removed_topic,
            FEATURE: self._feature,
            PRODUCER_IDS: self._producer_ids,
        }

    def apply(self, value: bytes, time: int = -1) -> None:
        """Apply a record; others than these are skipped."""
        self._time = time
        fields = FieldReader(value)
        try:
            frame, kind, version = fields.varint(), fields.varint(), fields.varint()
            if frame == FRAME and kind in self._verbs:
                self._verbs[kind](fields, version)
        except OutOfBounds:
            self.found.fault = "a record of the cluster's metadata ends too early"

    def _broker(self, fields: FieldReader, version: int) -> None:  # noqa: ARG002 - as the others
        self.found.starts.append(self._time)
        self.found.started[fields.number(4)] += 1

    def _topic(self, fields: FieldReader, version: int) -> None:  # noqa: ARG002 - all versions begin so
        name, identity = fields.text() or "", fields.identity()
        before = self.found.topics.get(name)
        self._names[identity] = name
        if before is None or before.id != identity:
            self.found.topics[name] = TopicSettings(identity, before.generations + 1 if before else 1)
        for setting, value in self._early.pop(name, ()):
            self._set_of_topic(self.found.topics[name], setting, value)

    def _partition(self, fields: FieldReader, version: int) -> None:  # noqa: ARG002 - as above
        number, topic = fields.number(4), self._names.get(fields.identity())
        replicas, in_sync, _removing, _adding = (fields.several(int32) for _ in range(4))
        leader, epoch = fields.number(4), fields.number(4)
        if topic is not None:
            self.found.partitions[PartitionName(topic, number)] = PartitionState(replicas, in_sync, leader, epoch)

    def _partition_change(self, fields: FieldReader, version: int) -> None:  # noqa: ARG002 - as above
        number, topic = fields.number(4), self._names.get(fields.identity())
        state = self.found.partitions.get(PartitionName(topic or "", number))
        if state is None:
            return
        for tag, inner in fields.tags():
            if tag == 0:
                state.in_sync = inner.several(int32)
            elif tag == 1 and (leader := inner.number(4)) != SAME_LEADER:
                state.leader, state.epoch = leader, state.epoch + 1
            elif tag == 2:
                state.replicas = inner.several(int32)
            elif tag == 5:
                state.was_recovering |= inner.number(1) == 1

    def _config(self, fields: FieldReader, version: int) -> None:  # noqa: ARG002 - as above
        kind, resource, name, value = fields.number(1), fields.text() or "", fields.text() or "", fields.text()
        topic = self.found.topics.get(resource)
        if kind == OF_BROKER and resource == "":
            _set(self.found.defaults, name, value)
        if kind == OF_TOPIC and (topic is None or topic.is_removed):
            self._early.setdefault(resource, []).append((name, value))
        elif kind == OF_TOPIC and topic is not None:
            self._set_of_topic(topic, name, value)

    @staticmethod
    def _set_of_topic(topic: TopicSettings, name: str, value: str | None) -> None:
        _set(topic.settings, name, value)
        topic.was_compacted |= name == POLICY and COMPACT in (value or "")

    def _removed_topic(self, fields: FieldReader, version: int) -> None:  # noqa: ARG002 - as above
        name = self._names.get(fields.identity())
        if name is not None:
            self.found.topics[name].is_removed = True
            for partition in [one for one in self.found.partitions if one.topic == name]:
                del self.found.partitions[partition]

    def _feature(self, fields: FieldReader, version: int) -> None:  # noqa: ARG002 - as above
        name = fields.text() or ""
        self.found.features[name] = fields.number(2)

    def _producer_ids(self, fields: FieldReader, version: int) -> None:  # noqa: ARG002 - as above
        fields.taken(12)  # the broker, and its epoch
        self.found.next_producer = fields.number(8)


def _set(settings: dict[str, str], name: str, value: str | None) -> None:
    """Change a setting; null removes it."""
    if value is None:
        settings.pop(name, None)
    else:
        settings[name] = value
