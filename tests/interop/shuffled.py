"""Boots brokers with settings chosen at random, and checks their stores after each of three lives.

    python -m tests.interop.shuffled [--stores 50] [--seed 1] [--versions 5.5.0,5.3.3,4.9.7] [--out DIR] [--only N]

Nothing is damaged, so each store must conform. What does not is kept in a folder of OUT as it was after that life,
with the check's output in `check.txt`; so is a store on which the broker did not start again. Expected are the
outcomes of `KNOWN`, each a fault of a broker, or a loss that its settings allow, which `docs/` describes.

Exit codes: 0 if nothing else was seen; 1 if something was; 2 if no broker could be booted.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from rich.console import Console

from tests.interop import jars
from tests.interop.broker import BrokerFailure
from tests.interop.layouts import COMPACTED, COMPACTS, FOLDER_OF_TIERS, KILL, REST, STOP, TIMED, WRITTEN_TWICE, Layout
from tests.interop.network import enter_a_network_of_its_own
from tests.interop.record import RecordingRun
from tests.interop.remoting import Refused

Settings = dict[str, str | int]
LIVES = 3
CONFORMS = 0  # the exit code of a check
COMES_AND_GOES = 0.3  # of the traits that may be switched on and off between lives
UPGRADED = 0.3  # of the stores, whose lives are of several versions, the oldest first


@dataclass(frozen=True)
class Trait:
    """Something that a broker may have besides: settings, traffic, and topics with their queues and attributes.

    `since`: the oldest version that has it · `excludes`: traits that it does not go with · `off`: settings of a life
    without it, if it may come and go.
    """

    settings: Mapping[str, str | int] = field(default_factory=dict)
    sent: tuple[str, ...] = ()
    topics: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    since: tuple[int, int] = (4, 9)
    excludes: frozenset[str] = frozenset()
    weight: float = 0.2
    off: Mapping[str, str | int] = field(default_factory=dict)


TRAITS: dict[str, Trait] = {
    "timers": Trait(TIMED, ("timer",), since=(5, 0), off={"timerWheelEnable": "false"}),
    "timers in RocksDB": Trait(
        {"timerWheelEnable": "true", "timerRocksDBEnable": "true", "mappedFileSizeTimerLog": 4096},
        ("timer",),
        since=(5, 4),
        weight=0.1,
        off={"timerRocksDBEnable": "false"},
    ),
    "timed delays": Trait({**TIMED, "timerInterceptDelayLevel": "true"}, ("timer", "delay"), since=(5, 0), weight=0.1),
    "light": Trait(
        {"enableLmq": "true", "enableMultiDispatch": "true"},
        ("light",),
        off={"enableLmq": "false", "enableMultiDispatch": "false"},
    ),
    "queues in RocksDB": Trait({"storeType": "defaultRocksDB"}, since=(5, 3)),
    "both queues": Trait(
        WRITTEN_TWICE,
        since=(5, 3),
        excludes=frozenset({"queues in RocksDB"}),
        weight=0.1,
        off={"rocksdbCQDoubleWriteEnable": "false"},
    ),
    "tiered": Trait(FOLDER_OF_TIERS, since=(5, 3), weight=0.15),
    "compacted": Trait(
        COMPACTED,
        ("keyed",),
        {"kv": (2, COMPACTS)},
        since=(5, 1),
        excludes=frozenset({"queues in RocksDB", "both queues", "light"}),
        off={"enableCompaction": "false"},
    ),
    "inner batches": Trait(
        {"mapperFileSizeBatchConsumeQueue": 9200},
        topics={"inner": (2, "+queue.type=BatchCQ")},
        since=(5, 0),
        excludes=frozenset({"queues in RocksDB", "light", "tiered", "compacted"}),
    ),
    "index": Trait(
        {"messageIndexEnable": "true", "maxHashSlotNum": 40, "maxIndexNum": 300},
        weight=0.4,
        off={"messageIndexEnable": "false"},
    ),
    "index in RocksDB": Trait(
        {"messageIndexEnable": "true", "indexRocksDBEnable": "true", "indexFileWriteEnable": "false"},
        since=(5, 4),
        weight=0.1,
        off={"indexRocksDBEnable": "false", "indexFileWriteEnable": "true"},
    ),
    "halves in RocksDB": Trait(
        {"transRocksDBEnable": "true", "transWriteOriginTransHalfEnable": "false"},
        since=(5, 4),
        weight=0.1,
        off={"transRocksDBEnable": "false", "transWriteOriginTransHalfEnable": "true"},
    ),
    "extended": Trait(
        {
            "enableConsumeQueueExt": "true",
            "enableCalcFilterBitMap": "true",
            "enablePropertyFilter": "true",
            "mappedFileSizeConsumeQueueExt": 2048,
        },
        ("filter",),
        excludes=frozenset({"queues in RocksDB", "both queues"}),
        weight=0.15,
    ),
    "pop": Trait({"reviveInterval": 500}, ("pop",), since=(5, 0)),
    "pop in RocksDB": Trait(
        {"popConsumerKVServiceEnable": "true", "popConsumerKVServiceInit": "true"},
        ("pop",),
        since=(5, 4),
        weight=0.1,
        off={"popConsumerKVServiceEnable": "false"},
    ),
    "several folders": Trait({"storePathCommitLog": "STORE/commitlog,STORE/commitlog2"}, weight=0.15),
    "parallel entries": Trait(
        {"enableBuildConsumeQueueConcurrently": "true", "batchDispatchRequestThreadPoolNums": 4},
        since=(5, 0),
        off={"enableBuildConsumeQueueConcurrently": "false"},
    ),
    "checksums": Trait({"enabledAppendPropCRC": "true"}, since=(5, 1), off={"enabledAppendPropCRC": "false"}),
    "asynchronous deliveries": Trait(
        {"enableScheduleAsyncDeliver": "true"}, ("delay",), off={"enableScheduleAsyncDeliver": "false"}
    ),
    "long names": Trait(topics={"L" * 120: (2, "")}, since=(5, 0), excludes=frozenset({"tiered"})),
    "a pool": Trait(
        {"transientStorePoolEnable": "true", "transientStorePoolSize": 2},
        weight=0.1,
        off={"transientStorePoolEnable": "false"},
    ),
    "no maps": Trait(
        {"writeWithoutMmap": "true"},
        since=(5, 4),
        excludes=frozenset({"a pool"}),
        weight=0.1,
        off={"writeWithoutMmap": "false"},
    ),
    "DLedger": Trait(
        {
            "enableDLegerCommitLog": "true",
            "dLegerGroup": "lab-a",
            "dLegerPeers": "n0-127.0.0.1:40911",
            "dLegerSelfId": "n0",
            "maxMessageSize": 16_000,
        },
        excludes=frozenset({"several folders", "a pool", "no maps", "checksums", "inner batches", "light", "tiered"}),
        weight=0.1,
    ),
}
CHOICES: Mapping[str, tuple[str | int, ...]] = {
    "mappedFileSizeCommitLog": (1 << 15, 1 << 16, 100_000, 1 << 18, 1 << 20),
    "mappedFileSizeConsumeQueue": (400, 2000, 5999, 6000, 20_000),
    "messageDelayLevel": ("1s 2s 3s", "1s", "2s 1s 4s 1s", "1s 1s 1s 1s 1m"),
    "defaultTopicQueueNums": (1, 4, 8),
}
"""Settings that a store keeps for all its lives: files say their sizes, and levels their queues."""
CHANGES: Mapping[str, tuple[str | int, ...]] = {
    "flushDiskType": ("ASYNC_FLUSH", "ASYNC_FLUSH", "SYNC_FLUSH"),
    "flushIntervalCommitLog": (10, 500, 5000),
    "flushIntervalConsumeQueue": (10, 1000, 10_000),
    "flushCommitLogTimed": ("true", "false"),
    "transactionCheckInterval": (700, 1500, 60_000),
    "transactionTimeOut": (500, 1000, 6000),
    "transactionCheckMax": (1, 3, 15),
    "transactionOpBatchInterval": (50, 200, 3000),
    "transactionOpMsgMaxSize": (32, 4096),
    "flushConsumerOffsetInterval": (300, 1000, 5000),
    "flushDelayOffsetInterval": (300, 1000, 10_000),
    "topicQueueLockNum": (1, 32),
    "putConsumeQueueDataByFileChannel": ("true", "false"),
    "useReentrantLockWhenPutMessage": ("true", "false"),
    "recoverConcurrently": ("true", "false"),
    "traceTopicEnable": ("true", "false"),
    "enableSlaveActingMaster": ("false", "false", "true"),
    "messageIndexSafe": ("true", "false"),
    "warmMapedFileEnable": ("false", "false", "true"),
    "enableAsyncReput": ("true", "false"),
    "deliverWhileDispatched": ("true", "false"),
}
"""Settings that may be others in each life."""


@dataclass(frozen=True)
class KnownOutcome:
    """An outcome that is no mistake of a check: of which trait, what its output contains, and why it is so."""

    trait: str
    names: str
    because: str


KNOWN = (
    KnownOutcome(
        "queues in RocksDB",
        "a broker keeps those for its database in memory until it writes them all at once",
        "killed in its first life before it wrote any: docs/rocketmq.md#rocksdb-queues",
    ),
    KnownOutcome(
        "index", "legal if messageIndexEnable was off for a time", "it was, in a life between: docs/rocketmq.md#index"
    ),
    KnownOutcome(
        "no maps",
        "a broker would refuse to start",
        "5.5.0 writes whole pages, also where the size of a file is no multiple of a page; its next start refuses that",
    ),
    KnownOutcome(
        "a pool",
        "a broker with transientStorePoolEnable is killed",
        "what was in the pool is lost: docs/rocketmq.md#pool",
    ),
)


def draw(choose: Random, version: tuple[int, ...]) -> tuple[Layout, list[str]]:
    """A layout, and the names of its traits."""
    traits: list[str] = []
    for name in choose.sample(sorted(TRAITS), len(TRAITS)):
        trait = TRAITS[name]
        fits = trait.since <= version and not trait.excludes & set(traits)
        if fits and all(name not in TRAITS[one].excludes for one in traits) and choose.random() < trait.weight:
            traits.append(name)
    settings: Settings = {name: choose.choice(values) for name, values in CHOICES.items()}
    topics = {"orders": (choose.randint(1, 4), ""), "payments": (choose.randint(1, 3), "")}
    sent = [kind for kind in ("send", "batch", "delay", "transaction") if choose.random() < 0.7] or ["send"]
    for name in traits:
        settings |= TRAITS[name].settings
        topics |= TRAITS[name].topics
        sent += [kind for kind in TRAITS[name].sent if kind not in sent]
    if "batch" in sent and "compacted" in traits:
        sent.remove("batch")  # its messages have no keys, and brokers refuse these
    if "DLedger" in traits or "light" in traits:
        sent = [kind for kind in sent if kind != "batch"]
    choose.shuffle(sent)
    changes: list[Settings] = [
        {name: choose.choice(values) for name, values in CHANGES.items() if choose.random() < 0.4} for _ in range(LIVES)
    ]
    for name in traits:
        if TRAITS[name].off and choose.random() < COMES_AND_GOES:
            for change in changes:
                change.update(choose.choice((TRAITS[name].settings, TRAITS[name].off)))
    lives = tuple(choose.choice((STOP, KILL, KILL, REST)) for _ in range(LIVES))
    return (
        Layout(
            " · ".join(traits) or "nothing besides",
            settings | changes[0],
            lives=lives,
            sent=tuple(sent),
            topics=topics,
            later=tuple(changes[1:]),
            rest=choose.uniform(0.2, 2.5),
            tiered="tiered" in traits,
        ),
        traits,
    )


@dataclass
class ShuffledRun(RecordingRun):
    """A recording whose store is checked after each life: the exit code of each check, and its output.

    `jars_of`: the broker's folder of jars in each life.
    """

    jars_of: tuple[Path, ...] = ()
    checks: list[tuple[int, str]] = field(default_factory=list)

    def _live(self, settings: Settings, number: int, ending: str) -> None:
        self.jars = self.jars_of[number]
        super()._live(settings, number, ending)
        self._tidy()
        command = [sys.executable, "-m", "gapless", "check", str(self.home)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.checks.append((done.returncode, done.stdout + done.stderr))
        if done.returncode != CONFORMS:
            kept = self.home.with_name(f"{self.home.name}_life{number}")
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(self.home, kept)
            (kept / "check.txt").write_text(done.stdout + done.stderr)


def release(version: str) -> tuple[int, ...]:
    """The parts of a version."""
    return tuple(map(int, version.split(".")))


def explained(traits: list[str], output: str) -> bool:
    """True if it is known why such a store does not conform."""
    return any(known.trait in ("", *traits) and known.names in output for known in KNOWN)


def main() -> int:
    """Boot them, one after the other."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.interop.shuffled", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--stores", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--versions", default="5.5.0,5.3.3,4.9.7", help="of RocketMQ, taken in turn")
    parser.add_argument("--out", type=Path, default=Path("build/shuffled"), help="where stores are kept")
    parser.add_argument("--build", type=Path, default=Path("build"), help="where jars are kept")
    parser.add_argument("--jars", help="folders with jars of brokers; VERSION in it stands for the version")
    parser.add_argument("--sends", type=int, default=45, help="messages of each kind in a life, about")
    parser.add_argument("--only", type=int, help="the number of one store")
    chosen = parser.parse_args()
    console = Console(highlight=False, soft_wrap=True, markup=False)
    counts: Counter[str] = Counter()
    try:
        tools = jars.find_tools()
        if warning := enter_a_network_of_its_own("tests.interop.shuffled"):
            console.print(warning)
        for number in range(chosen.stores) if chosen.only is None else [chosen.only]:
            console.print(_store(chosen, tools, number, counts))
    except (jars.MissingTool, jars.FetchFailure) as error:
        console.print(f"nothing booted: {error}")
        return 2
    console.print(", ".join(f"{count:,} {what}" for what, count in counts.items()))
    return int(counts["unexplained"] > 0)


def _store(chosen: argparse.Namespace, tools: jars.Tools, number: int, counts: Counter[str]) -> str:
    """One store with all its lives; its line."""
    choose = Random(f"{chosen.seed}:{number}")
    versions = chosen.versions.split(",")
    lived = [versions[number % len(versions)]] * LIVES
    if choose.random() < UPGRADED:
        lived = sorted(choose.choices(versions, k=LIVES), key=release)
    layout, traits = draw(choose, release(lived[0])[:2])
    if chosen.jars:
        found = [Path(chosen.jars.replace("VERSION", version)) for version in lived]
    else:
        found = [jars.fetch(tools, version, chosen.build, tiered=layout.tiered) for version in lived]
    version = "-".join(dict.fromkeys(lived))
    home = chosen.out / f"{number:03}_{version}"
    run = ShuffledRun(
        layout, home, found[0], tools.java, version, Random(f"{number}"), chosen.sends, jars_of=tuple(found)
    )
    failure = ""
    try:
        run.record()
    except (BrokerFailure, Refused, OSError) as error:
        failure = f"life {len(run.checks)}: {error}"
    odd = [output for code, output in run.checks if code != CONFORMS and not explained(traits, output)]
    counts["stores"] += 1
    counts["lives"] += len(run.checks)
    counts["conform"] += sum(code == CONFORMS for code, _ in run.checks)
    refused = bool(failure and not run.checks)  # settings that do not go together: there is no store yet
    counts["never started"] += refused
    foretold = run.checks and (explained(traits, run.checks[-1][1]) or "hazard" in run.checks[-1][1])
    counts["unexplained"] += bool(odd or (failure and not refused and not foretold))
    if not odd and (refused or not failure):
        shutil.rmtree(home)
    lives = " ".join(f"{ending}:{code}" for ending, (code, _) in zip(layout.lives, run.checks, strict=False))
    return f"{number:03} {version} {lives}  {layout.says}  {failure}"


if __name__ == "__main__":
    sys.exit(main())
