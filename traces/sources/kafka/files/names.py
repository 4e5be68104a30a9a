"""Names of folders and files in a data directory, and what they say."""

from __future__ import annotations

import re
from typing import NamedTuple

PARTITION = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<number>[0-9]{1,10})")
"""The folder of a partition: the topic is all that stands before the last hyphen."""
LEAVING = re.compile(rf"{PARTITION.pattern}\.[0-9a-f]{{32}}-(?P<suffix>delete|future|stray)")
"""A partition's folder that is deleted, moved in from another directory, or unknown to the cluster."""
NUMBERED = re.compile(r"(?P<number>[0-9]{20})\.(?P<kind>log|index|timeindex|txnindex|snapshot)(?P<suffix>\.[a-z]+)?")
"""A file that is named by an offset."""
METADATA_SNAPSHOT = re.compile(r"(?P<number>[0-9]{20})-(?P<epoch>[0-9]{10})\.checkpoint")
"""A snapshot of the cluster's metadata."""

META, STOPPED, EPOCHS, TOPIC_ID = (
    "meta.properties",
    ".kafka_cleanshutdown",
    "leader-epoch-checkpoint",
    "partition.metadata",
)
RECOVERY, WATERMARK = "recovery-point-offset-checkpoint", "replication-offset-checkpoint"
LOG_START, CLEANER = "log-start-offset-checkpoint", "cleaner-offset-checkpoint"
METADATA_TOPIC, TRANSACTION_TOPIC, OFFSETS_TOPIC = "__cluster_metadata", "__transaction_state", "__consumer_offsets"

SWAP = ".swap"
IGNORED = frozenset({".deleted", ".cleaned"})
OTHER_FILES = frozenset({EPOCHS, TOPIC_ID, "quorum-state", f"{EPOCHS}.tmp", f"{TOPIC_ID}.tmp", "remote_log_snapshot"})
"""Files of a partition that are named by no offset."""
LARGEST_OFFSET = (1 << 63) - 1


class PartitionName(NamedTuple):
    """A topic, and the number of one of its partitions."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


def partition_name(folder: str) -> PartitionName | None:
    """The partition that a folder is named after; None for other names."""
    found = PARTITION.fullmatch(folder)
    if found is None or (number := int(found["number"])) >= 1 << 31 or str(number) != found["number"]:
        return None
    return PartitionName(found["topic"], number)
