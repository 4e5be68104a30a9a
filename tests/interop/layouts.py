"""The layouts that `tests/interop/record.py` records: settings, what is sent, and how each life of the broker ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

STOP, KILL, REST = "stop", "kill", "rest"  # how a life ends: asked to; killed while clients send, or while idle
LIVES = (STOP, KILL, STOP)
SMALL: Mapping[str, str | int] = {
    "brokerClusterName": "lab",
    "brokerName": "lab-a",
    "mappedFileSizeCommitLog": 1 << 18,
    "mappedFileSizeConsumeQueue": 6000,
    "messageIndexEnable": "false",
    "transactionCheckInterval": 1000,
    "transactionTimeOut": 1000,
    "transactionOpBatchInterval": 200,
    "transactionCheckMax": 3,
    "flushConsumerOffsetInterval": 1000,
    "flushDelayOffsetInterval": 1000,
    "messageDelayLevel": "1s 2s 3s",
}
"""What all of them have, unless they say otherwise: files of few records, and clocks that run fast."""
FOLDER_OF_TIERS: Mapping[str, str | int] = {
    "messageStorePlugIn": "org.apache.rocketmq.tieredstore.TieredMessageStore",
    "tieredBackendServiceProvider": "org.apache.rocketmq.tieredstore.provider.PosixFileSegment",
    "tieredStoreFilePath": "STORE/tieredstore",
    "tieredStoreGroupCommitTimeout": 1000,
    "tieredStoreGroupCommitCount": 20,
    "tieredStoreCommitLogMaxSize": 20_000,
    "tieredStoreConsumeQueueMaxSize": 610,
    "tieredStoreIndexFileMaxHashSlotNum": 40,
    "tieredStoreIndexFileMaxIndexNum": 200,
}


@dataclass(frozen=True)
class Layout:
    """One recorded layout.

    `sent`: kinds of traffic, as `tests/interop/traffic.py` names them · `topics`: queues, and attributes, of each ·
    `later`: settings that change with the second life, and so on · `rest`: seconds before a broker is stopped in which
    it is left alone · `since`: the oldest version that has it · STORE in a setting is the folder of the store.
    """

    says: str
    settings: Mapping[str, str | int] = field(default_factory=dict)
    lives: tuple[str, ...] = LIVES
    sent: tuple[str, ...] = ("send", "batch", "delay", "transaction")
    topics: Mapping[str, tuple[int, str]] = field(default_factory=lambda: {"orders": (3, ""), "payments": (3, "")})
    later: tuple[Mapping[str, str | int], ...] = ()
    rest: float = 3
    since: tuple[int, int] = (4, 9)
    tiered: bool = False
    address: str = "127.0.0.1"


WRITTEN_TWICE: Mapping[str, str | int] = {
    "rocksdbCQDoubleWriteEnable": "true",
    "useSeparateStorePathForRocksdbCQ": "true",
    "combineCQUseRocksdbForLmq": "true",
}
"""Queues in files and in a database. Without the last setting 5.5.0 does not start."""
COMPACTED: Mapping[str, str | int] = {
    "enableCompaction": "true",
    "compactionScheduleInternal": 1500,
    "compactionMappedFileSize": 1 << 14,
    "compactionCqMappedFileSize": 4600,
    "maxOffsetMapSize": 1 << 20,
}
COMPACTS = "+cleanup.policy=COMPACTION"
TIMED: Mapping[str, str | int] = {"timerWheelEnable": "true", "mappedFileSizeTimerLog": 4096, "timerRollWindowSlot": 30}


def popped(where: str, in_database: str, *, since: tuple[int, int]) -> Layout:
    """Consumers that acknowledge nothing, so that the broker hands the messages out again; where it notes that down."""
    settings = {"reviveInterval": 500} | dict.fromkeys(
        ("popConsumerKVServiceEnable", "popConsumerKVServiceInit"), in_database
    )
    says = f"pop consumers that acknowledge nothing, with what they have {where}"
    return Layout(says, {**TIMED, **settings}, sent=("send", "pop"), since=since, rest=20)


TIERED_INDEX = Layout(
    "tiered storage in a folder, with its index, small enough to fill",
    {**FOLDER_OF_TIERS, "messageIndexEnable": "true"},
    lives=(STOP, STOP),
    sent=("send", "delay", "transaction"),
    topics={"orders": (2, ""), "payments": (2, "")},
    rest=75,
    since=(5, 3),
    tiered=True,
)


LAYOUTS: dict[str, Layout] = {
    # -- those whose recordings lie in tests/recordings/layouts/
    "plain": Layout("plain consume queues"),
    "index": Layout(
        "the hash index, small enough to fill",
        {"messageIndexEnable": "true", "maxHashSlotNum": 40, "maxIndexNum": 300},
        lives=(STOP, STOP, STOP),
    ),
    "extended": Layout(
        "extended entries, of 2 KiB a file",
        {
            "enableConsumeQueueExt": "true",
            "enableCalcFilterBitMap": "true",
            "enablePropertyFilter": "true",
            "mappedFileSizeConsumeQueueExt": 2048,
        },
        sent=("send", "delay", "transaction", "filter"),
    ),
    "timer": Layout(
        "messages with a time of their own, on the timer wheel", TIMED, sent=("send", "timer"), since=(5, 0), rest=12
    ),
    "tiered": Layout(
        "tiered storage in a folder", FOLDER_OF_TIERS, lives=(STOP, STOP), rest=45, since=(5, 3), tiered=True
    ),
    "tiered-index": TIERED_INDEX,
    "tiered-index-killed": replace(
        TIERED_INDEX, says="tiered storage in a folder, with its index, killed while idle", lives=(REST,)
    ),
    "batchcq": Layout(
        "queues of inner batches, next to a plain one",
        {"mapperFileSizeBatchConsumeQueue": 9200},
        sent=("send", "batch"),
        topics={"inner": (2, "+queue.type=BatchCQ"), "inner2": (1, "+queue.type=BatchCQ"), "plain": (2, "")},
        since=(5, 0),
    ),
    "lmq": Layout("light queues", {"enableLmq": "true", "enableMultiDispatch": "true"}, sent=("send", "light")),
    "rocksdb": Layout("queues in RocksDB", {"storeType": "defaultRocksDB"}, since=(5, 3)),
    "both": Layout(
        "queues in files and in RocksDB",
        WRITTEN_TWICE,
        since=(5, 3),
    ),
    "halfdb": Layout(
        "a table of halves in RocksDB",
        {"transRocksDBEnable": "true", "transWriteOriginTransHalfEnable": "false", "transactionCheckMax": 4},
        since=(5, 4),
    ),
    "dledger": Layout(
        "a DLedger log, of a group of one",
        {
            "enableDLegerCommitLog": "true",
            "dLegerGroup": "lab-a",
            "dLegerPeers": "n0-127.0.0.1:40911",
            "dLegerSelfId": "n0",
            "mappedFileSizeCommitLog": 1 << 16,
            "maxMessageSize": 16_000,
        },
        sent=("send", "delay", "transaction"),
    ),
    "dledger-one-file": Layout(
        "a DLedger log of one file, killed when all of it was committed",
        {
            "enableDLegerCommitLog": "true",
            "dLegerGroup": "lab-a",
            "dLegerPeers": "n0-127.0.0.1:40911",
            "dLegerSelfId": "n0",
            "mappedFileSizeCommitLog": 1 << 21,
            "maxMessageSize": 16_000,
        },
        lives=(REST, STOP),
        sent=("send", "send", "delay"),
        rest=8,
    ),
    "compacted": Layout(
        "compacted topics, next to a plain one",
        COMPACTED,
        sent=("keyed", "transaction"),
        topics={"kv": (2, COMPACTS), "kv2": (1, COMPACTS), "plain": (1, "")},
        since=(5, 1),
        rest=6,
    ),
    "compacted-killed": Layout(
        "the same, killed twice",
        COMPACTED,
        lives=(KILL, KILL),
        sent=("keyed", "transaction"),
        topics={"kv": (2, COMPACTS), "kv2": (1, COMPACTS), "plain": (1, "")},
        since=(5, 1),
    ),
    "timerdb": Layout(
        "messages with a time of their own, in RocksDB",
        {"timerWheelEnable": "true", "timerRocksDBEnable": "true", "mappedFileSizeTimerLog": 4096},
        sent=("send", "timer"),
        since=(5, 4),
        rest=12,
    ),
    "indexdb": Layout(
        "the index of keys in RocksDB alone",
        {"messageIndexEnable": "true", "indexRocksDBEnable": "true", "indexFileWriteEnable": "false"},
        since=(5, 4),
        rest=12,
    ),
    # -- settings that are not everyday
    "paths": Layout(
        "a log in several folders",
        {"storePathCommitLog": "STORE/commitlog,STORE/commitlog2,STORE/commitlog3", "mappedFileSizeCommitLog": 1 << 14},
    ),
    "paths-read-only": Layout(
        "the same, whose first folder is only read from the second life on",
        {"storePathCommitLog": "STORE/commitlog,STORE/commitlog2", "mappedFileSizeCommitLog": 1 << 14},
        later=({"readOnlyCommitLogStorePaths": "STORE/commitlog"},),
    ),
    "async-delivery": Layout(
        "delayed messages that are delivered several at once",
        {"enableScheduleAsyncDeliver": "true"},
        sent=("delay", "send"),
        rest=5,
    ),
    "delays-changed": Layout(
        "other delay levels in each life",
        lives=(KILL, STOP, STOP),
        sent=("delay", "send", "transaction"),
        later=({"messageDelayLevel": "2s 1s 4s 1s"}, {"messageDelayLevel": "1s"}),
    ),
    "concurrent": Layout(
        "entries that several threads build",
        {"enableBuildConsumeQueueConcurrently": "true", "batchDispatchRequestThreadPoolNums": 4},
        since=(5, 0),
    ),
    "checksums": Layout(
        "properties with a checksum of their own",
        {"enabledAppendPropCRC": "true", "forceVerifyPropCRC": "true"},
        since=(5, 1),
    ),
    "long-topics": replace(
        popped("in topics of 134 bytes, in records of the second version", "false", since=(5, 0)),
        topics={"L" * 120: (2, ""), "orders": (2, "")},
    ),
    "one-version": Layout(
        "short topics where the version of a record is fixed", {"autoMessageVersionOnTopicLen": "false"}, since=(5, 0)
    ),
    "ipv6": Layout(
        "a broker and clients with long addresses",
        {"brokerIP1": "::1", "brokerIP2": "::1", "bindAddress": "::1"},
        address="::1",
    ),
    "pop": popped("in topics of the broker's", "false", since=(5, 0)),
    "pop-rocksdb": popped("in RocksDB", "true", since=(5, 4)),
    "pool": Layout(
        "records that are written to memory of their own first",
        {"transientStorePoolEnable": "true", "transientStorePoolSize": 2, "flushDiskType": "ASYNC_FLUSH"},
    ),
    "no-maps": Layout("files that are written without a map", {"writeWithoutMmap": "true"}, since=(5, 4)),
    "timer-all": Layout(
        "delay levels that wait in the timer wheel, which a ring of threads fills",
        {**TIMED, "timerInterceptDelayLevel": "true", "timerEnableDisruptor": "true", "timerPrecisionMs": 500},
        sent=("send", "timer", "delay"),
        since=(5, 0),
        rest=12,
    ),
}
