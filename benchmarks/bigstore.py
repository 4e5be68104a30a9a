"""A large RocketMQ store, as a broker leaves it after a clean stop.

    python -m benchmarks.bigstore DIR --records 1000000 --verify
    python -m benchmarks.bigstore DIR --records 1000000 --transactions 100000 --verify

One native kernel writes records straight into the mapped commit-log file, and their queue entries into a small
buffer that is emptied a batch at a time, so memory does not grow with the store. The same seed gives the same
bytes.

With transactions, `DIR` gets the store, the broker's settings and the client log of its producers. Of a
hundred halves, 60 are committed, 39 rolled back and one is parked; five are put back first. Ops take decisions until
they are full. Whatever is undecided at the end stays so, and the cursors stop before it.

`--verify` reads a store back with a plain, slow parser that shares no code with the writer; it reads a real
broker's recording just as well.
"""

from __future__ import annotations

import argparse
import json
import mmap
import random
import struct
import time
import zlib
from array import array
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks import bigclient
from gapless.native import function

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Tails = tuple[Bytes, Ints, Ints, Ints]  # padded bytes, their lengths, tag codes, where digits of keys go
World = tuple[tuple[int, ...], Bytes, Bytes, Tails, Ints]  # settings, head, words, tails, CRC tables
Out = tuple[Ints, Ints, Bytes, Ints]  # next number of each queue; per record its queue and entry; client lines
Backlog = tuple[Ints, Ints, Ints, Ints]  # what is due when, numbers that wait for an op, reach of each op, counts
Entries = npt.NDArray[np.void]
Int = int | np.int64

QUEUE_FILE = 6_000_000
POWERS = np.array([10**power for power in range(19)])
ENTRY = np.dtype([("position", ">i8"), ("size", ">i4"), ("code", ">i8")])
BATCH = 200_000  # records between two writes to the queues
TAGS = ("TagA", "TagB", "TagC", "paid", "a-rather-long-tag-name-for-hashing", "")  # the last: no tag
STARTED = 1_760_000_000_000  # ms; when the first record was stored
RECORDS_PER_MS = 40
KEY_PREFIX = "7F0000010A2B18B4"  # the sender's address, process and class loader; sixteen digits follow

SYSTEM = ("RMQ_SYS_TRANS_HALF_TOPIC/0", "RMQ_SYS_TRANS_OP_HALF_TOPIC/0", "TRANS_CHECK_MAX_TIME_TOPIC/0")
CHECKS = 3  # times that a half is put back before it is parked
PATIENCE = 40_000  # records, a second of them, after which a half is put back
OP_SIZE = 4096  # bytes of an op's body: it is full then
SETTINGS = f"""brokerRole=ASYNC_MASTER
transactionCheckInterval=100
transactionTimeOut=1000
transactionCheckMax={CHECKS}
transactionOpMsgMaxSize={OP_SIZE}
"""

# What a record is, or what becomes of a half; a rollback has no record.
MESSAGE, HALF, PUT_BACK, FINAL, PARKED, OP, ROLLBACK = range(7)
FORMS = 2 * (CHECKS + 1) + 1  # of a transaction's records: halves and finals by their counter, and the parked half
# Columns of what is due: what, the record that the half was first, its number and position, its counter.
DUE, BIRTH, NUMBER, POSITION, TIMES, DUE_COLUMNS = range(6)
BEGUN, WAITING, BYTES, CLIENT_LINES, COUNTS = range(
    5
)  # halves begun; numbers that wait for an op, their bytes; client lines
# Columns of client lines: one of the above, whose birth, for which queue, the body; number, position, counter.
TELLS, OF, QUEUE, LENGTH, CRC, AS_NUMBER, AT_POSITION, WITH_TIMES, CLIENT_COLUMNS = range(9)


@dataclass(frozen=True)
class Shape:
    """The parameters of a store."""

    records: int
    file_size: int = 2**30
    queue_file_size: int = QUEUE_FILE
    topics: tuple[str, ...] = ("orders", "payments", "audit-log", "shipments")
    queues: int = 4  # of each topic
    body: int = 135  # mean bytes; a record then has 350, as on the broker whose own recovery was timed
    seed: int = 1
    transactions: int = 0  # halves among the records; a quarter of them at most

    @property
    def paths(self) -> list[str]:
        """Every queue, in the order in which the kernel counts them."""
        return [*(f"{topic}/{queue}" for topic in self.topics for queue in range(self.queues)), *SYSTEM]

    @property
    def patience(self) -> int:
        """After how many records an undecided half is put back: in a small store soon, so that it happens."""
        return max(10, min(PATIENCE, self.records // 10))


def make_with_clients(folder: Path, shape: Shape) -> None:
    """Write a store, the broker's settings, and a client log, into an empty or new directory."""
    _need_empty(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "broker.conf").write_text(SETTINGS)
    with (folder / CLIENT_LOG).open("wb") as client_log:
        make(folder / "store", shape, bigclient.Writer(client_log, shape.paths, KEY_PREFIX))


CLIENT_LOG = "clients.ndjson"  # under another name than a check looks for by itself: it is to be asked for


def make(store: Path, shape: Shape, clients: bigclient.Writer | None = None) -> None:
    """Write the store into an empty or new directory."""
    _need_empty(store)
    if 4 * shape.transactions > shape.records:
        message = f"{shape.transactions} transactions need at least four times as many records"
        raise ValueError(message)
    (store / "commitlog").mkdir(parents=True)
    cursors = _write_log_and_queues(store, shape, clients)
    stored = _stored_at(shape.records - 1) if shape.records else 0
    (store / "checkpoint").write_bytes(struct.pack(">qq", stored, stored).ljust(4096, b"\0"))
    (store / "lock").write_bytes(b"lock")
    (store / "config").mkdir()
    (store / "config" / "topics.json").write_text(_topics_json(shape))
    if shape.transactions:
        (store / "config" / "consumerOffset.json").write_text(_cursors_json(*cursors))


def _need_empty(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()):
        message = f"{folder} is not empty"
        raise FileExistsError(message)


def _write_log_and_queues(store: Path, shape: Shape, clients: bigclient.Writer | None) -> tuple[int, int]:
    """Returns where the half cursor and the op cursor stand at the end."""
    world, backlog = _world(shape), _empty_backlog(shape)
    paths = shape.paths
    numbers = np.zeros(len(paths), np.int64)
    queue_of, entries = np.empty(BATCH, np.int64), np.empty((BATCH, 20), np.uint8)
    client_lines = np.empty((2 * BATCH + 1, CLIENT_COLUMNS), np.int64)
    done = base = 0
    while done < shape.records:
        log = np.memmap(_whole_file(store / "commitlog", base, shape.file_size), np.uint8, "r+")
        end, full = 0, False
        while done < shape.records and not full:
            wanted, before = min(BATCH, shape.records - done), numbers.copy()
            count, end = _append(
                log, base, end, done, wanted, world, (numbers, queue_of, entries, client_lines), backlog
            )
            if clients:
                clients.write(client_lines[: backlog[-1][CLIENT_LINES]])
            backlog[-1][CLIENT_LINES] = 0
            order = np.argsort(queue_of[:count], kind="stable")
            bounds = np.searchsorted(queue_of[order], np.arange(len(paths) + 1))
            for queue, path in enumerate(paths):
                block = entries[order[bounds[queue] : bounds[queue + 1]]]
                _append_entries(
                    store / "consumequeue" / path, int(before[queue]), block.tobytes(), shape.queue_file_size
                )
            done, full = done + count, count < wanted
        if end == 0:
            message = f"a file of {shape.file_size} bytes is too small for a record"
            raise ValueError(message)
        if full:
            log[end : end + 8] = list(struct.pack(">II", shape.file_size - end, 0xCBD43194))
        base += shape.file_size
    return _cursors(numbers, backlog)


def _empty_backlog(shape: Shape) -> Backlog:
    due = np.zeros((2 * shape.patience + 64, DUE_COLUMNS), np.int64)
    return due, np.zeros(OP_SIZE, np.int64), np.zeros(shape.transactions // 100 + 16, np.int64), np.zeros(COUNTS, int)


def _cursors(numbers: Ints, backlog: Backlog) -> tuple[int, int]:
    """Return the half cursor at the first open half, and the op cursor at the first op that names one."""
    due, _waiting, reach, _counts = backlog
    halves, ops = numbers[-3:-1].tolist()
    half = int(due[due[:, DUE] != MESSAGE, NUMBER].min(initial=halves))
    return half, int((np.maximum.accumulate(reach[:ops]) <= half).sum())


def _append_entries(queue: Path, number: int, entries: bytes, file_size: int) -> None:
    """Entries begin at `number`, and may fill several files."""
    while entries:
        within = number * 20 % file_size
        block, entries = entries[: file_size - within], entries[file_size - within :]
        with _whole_file(queue, number * 20 - within, file_size).open("r+b") as file:
            file.seek(within)
            file.write(block)
        number += len(block) // 20


def _whole_file(folder: Path, base: int, size: int) -> Path:
    """The file that begins at `base`, made at full length (sparse zeros) if it is not there yet."""
    path = folder / f"{base:020}"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.truncate(size)
    return path


def _world(shape: Shape) -> World:
    """All that the kernel draws records from."""
    client, broker = b"\x7f\0\0\1" + struct.pack(">I", 51628), b"\x7f\0\0\1" + struct.pack(">I", 10911)
    head = struct.pack(">4xI32x8x8s8x8s16x", 0xDAA320A7, client, broker)
    settings = (shape.seed, shape.queues, shape.body, shape.records, shape.transactions, shape.patience)
    return settings, np.frombuffer(head, np.uint8), _words(shape.seed), _tails(shape), _crc_tables()


def _tails(shape: Shape) -> Tails:
    """Return the ends of records of each kind.

    Of messages, by topic and tag; of a transaction's records, by queue and form; of an op.
    """
    forms = [(topic, _message(tag)) for topic in shape.topics for tag in TAGS]
    for path in shape.paths[: -len(SYSTEM)]:
        forms += _forms_for(*path.split("/"))
    forms.append((SYSTEM[1].split("/")[0], {"WAIT": "true", "TAGS": "d"}))
    tails = [_tail(topic, pairs) for topic, pairs in forms]
    longest = max(map(len, tails))
    padded = np.frombuffer(b"".join(tail.ljust(longest, b"\0") for tail in tails), np.uint8)
    lengths = np.array([len(tail) for tail in tails])
    codes = np.array([_tag_code(pairs.get("TAGS", "")) for _, pairs in forms])
    return padded.reshape(-1, longest), lengths, codes, np.array([_holes(tail) for tail in tails])


# Properties come in the order in which a real broker's Java map gave them.


def _message(tag: str) -> dict[str, str]:
    pairs = {"MSG_REGION": "DefaultRegion", "UNIQ_KEY": KEY, "CLUSTER": "lab"}
    pairs |= {"TAGS": tag} if tag else {}
    return pairs | {"WAIT": "true", "TRACE_ON": "true"}


def _forms_for(topic: str, queue: str) -> list[tuple[str, dict[str, str]]]:
    """Return the forms of a half for a queue: each renewal, the final of each, and the parked one."""
    half_topic, _op_topic, parked_topic = (path.split("/")[0] for path in SYSTEM)
    kept = {"MSG_REGION": "DefaultRegion", "UNIQ_KEY": KEY, "CLUSTER": "lab", "PGROUP": "PG_lab"}
    kept |= {"__transactionId__": KEY, "TAGS": "paid", "WAIT": "true", "TRAN_MSG": "true", "TRACE_ON": "true"}
    counted = [kept | ({"TRANSACTION_CHECK_TIMES": str(times)} if times else {}) for times in range(CHECKS + 1)]
    aim = {"REAL_TOPIC": topic, "REAL_QID": queue}
    halves = [(half_topic, pairs | aim) for pairs in counted]
    return [*halves, *((topic, pairs) for pairs in counted), (parked_topic, counted[CHECKS] | aim)]


def _tail(topic: str, pairs: dict[str, str]) -> bytes:
    properties = "".join(f"{name}\x01{value}\x02" for name, value in pairs.items()).encode()
    name = topic.encode()
    return bytes([len(name)]) + name + struct.pack(">H", len(properties)) + properties


KEY = KEY_PREFIX + 16 * "0"


def _holes(tail: bytes) -> tuple[int, int]:
    """Return the places of the key's digits: none, one or two."""
    before, *parts = tail.split(KEY.encode())
    first = len(before) + len(KEY_PREFIX) if parts else -1
    return first, first + len(KEY) + len(parts[0]) if len(parts) > 1 else -1


def _tag_code(tag: str) -> int:
    """Java's `String.hashCode`."""
    code = 0
    for letter in tag:
        code = (31 * code + ord(letter)) & 0xFFFFFFFF
    return code - 2**32 if code >= 2**31 else code


def _words(seed: int) -> Bytes:
    """A quarter of a megabyte of text to cut bodies from."""
    chance = random.Random(seed)
    words = ("alpha", "delta", "gamma", "omega", "sigma", "zeta")
    text = " ".join(f"{chance.choice(words)}-{chance.getrandbits(48):012x}" for _ in range(14_000))
    return np.frombuffer(text.encode(), np.uint8)


def _crc_tables() -> Ints:
    """Row *k*: the CRC of a byte that *k* zero bytes follow."""
    tables = np.zeros((8, 256), np.int64)
    tables[0] = range(256)
    for _ in range(8):
        tables[0] = (tables[0] >> 1) ^ (0xEDB88320 * (tables[0] & 1))
    for row in range(1, 8):
        tables[row] = (tables[row - 1] >> 8) ^ tables[0, tables[row - 1] & 255]
    return tables


def _topics_json(shape: Shape) -> str:
    queues = dict.fromkeys(shape.topics, shape.queues)
    queues |= {path.split("/")[0]: 1 for path in SYSTEM} if shape.transactions else {}
    table = {
        topic: {
            "attributes": {},
            "order": False,
            "perm": 6,
            "readQueueNums": count,
            "topicFilterType": "SINGLE_TAG",
            "topicName": topic,
            "topicSysFlag": 0,
            "writeQueueNums": count,
        }
        for topic, count in queues.items()
    }
    version = {"counter": len(table), "stateVersion": 0, "timestamp": STARTED}
    return json.dumps({"dataVersion": version, "topicConfigTable": table}, indent="\t", separators=(",", ":"))


def _cursors_json(half: int, op: int) -> str:
    """Format cursors like fastjson: queues are keys without quotes."""
    lines = (
        f'\t\t"{path.split("/")[0]}@CID_RMQ_SYS_TRANS":{{\n\t\t\t0:{cursor}\n\t\t}}'
        for path, cursor in zip(SYSTEM, (half, op), strict=False)
    )
    return '{\n\t"offsetTable":{\n' + ",\n".join(lines) + "\n\t}\n}"


def _stored_at(number: int) -> int:
    return STARTED + number // RECORDS_PER_MS


# The kernel. Its integers are signed but for the random bits.


@function
def _append(
    log: Bytes, base: int, end: int, done: int, wanted: int, world: World, out: Out, backlog: Backlog
) -> tuple[int, int]:
    """Append `wanted` records at `end`, or as many as fit: how many, and where the last one ends."""
    (seed, queues, mean, records, transactions, patience), _head, pool, tails, _tables = world
    next_numbers, queue_of, entries, client_lines = out
    due, _waiting, _reach, counts = backlog
    users = len(next_numbers) - len(SYSTEM)
    for count in range(wanted):
        record = done + count
        slot = record % len(due)
        what, birth, times = MESSAGE, record, 0
        if transactions > 0:
            what = _next(record, records, transactions, out, backlog)
            if what in (PUT_BACK, FINAL, PARKED):
                birth, times = due[slot, BIRTH], due[slot, TIMES] + (what == PUT_BACK)

        bits = _random_bits(seed, birth)
        queue = (bits & 0xFFFF) % users
        body = counts[BYTES] if what == OP else mean // 2 + (bits >> 24 & 0xFFFF) % (mean + 1)
        cut = (bits >> 40) % (len(pool) - body)
        tail, place = _form(what, queue, bits, times, queues, users)
        size = 88 + body + tails[1][tail]
        if end + size + 8 > len(log):
            return count, end

        number, position = next_numbers[place], base + end
        half = (due[slot, NUMBER], due[slot, POSITION]) if what == FINAL else (number, position)
        where = (number, place % queues if place < users else 0, position, half[1])
        crc = _write(log, end, (what, record, birth), (tail, body, cut), where, world, backlog)
        _put(entries[count], 0, 8, position)
        _put(entries[count], 8, 4, size)
        _put(entries[count], 12, 8, tails[2][tail])
        queue_of[count] = place
        next_numbers[place] += 1
        if what not in (OP, PARKED):
            _add_client_line(client_lines, counts, (what, birth, queue, body, crc, half[0], half[1], times))
        if transactions > 0:
            _go_on(what, record, birth, (number, position, times), seed, patience, backlog)
        end += size
    return wanted, end


@function
def _form(what: int, queue: int, bits: int, times: int, queues: int, users: int) -> tuple[int, int]:
    """Return a record's tail and its queue: by its message's queue, and the number of renewals."""
    forms = users // queues * len(TAGS) + queue * FORMS
    if what == MESSAGE:
        return queue // queues * len(TAGS) + (bits >> 16 & 0xFF) % len(TAGS), queue
    if what == FINAL:
        return forms + CHECKS + 1 + times, queue
    if what == PARKED:
        return forms + FORMS - 1, users + 2
    if what == OP:
        return users // queues * len(TAGS) + users * FORMS, users + 1
    return forms + times, users


@function
def _write(
    log: Bytes, end: int, record: tuple[int, ...], parts: tuple[int, ...], where: tuple[int, ...],
    world: World, backlog: Backlog,
) -> np.int64:  # fmt: skip
    """Write one record at `end`, and return the CRC of its body."""
    _settings, head, pool, (tails, tail_lengths, _codes, holes), tables = world
    _due, waiting, reach, counts = backlog
    (what, order, birth), (tail, body, cut), (number, queue, position, half) = record, parts, where
    after, stored = end + 88 + body, STARTED + order // RECORDS_PER_MS
    log[end : end + 88] = head
    if what == OP:
        log[end + 48 : end + 56] = head[64:72]  # born where it is stored
        reach[number] = _put_numbers(log, end + 88, waiting, counts)
    else:
        log[end + 88 : after] = pool[cut : cut + body]
    log[after : after + tail_lengths[tail]] = tails[tail, : tail_lengths[tail]]
    for hole in holes[tail]:
        if hole >= 0:
            _put_hexadecimal(log, after + hole, birth)
    crc: np.int64 = _crc(log, end + 88, after, tables) & 0x7FFFFFFF
    _put(log, end, 4, 88 + body + tail_lengths[tail])
    _put(log, end + 8, 4, crc)
    _put(log, end + 12, 4, queue)
    _put(log, end + 20, 8, number)
    _put(log, end + 28, 8, position)
    _put(log, end + 36, 4, 8 if what == FINAL else 0)
    _put(log, end + 40, 8, stored if what == OP else STARTED + birth // RECORDS_PER_MS - (cut & 15))
    _put(log, end + 56, 8, stored)
    _put(log, end + 76, 8, half if what == FINAL else 0)
    _put(log, end + 84, 4, body)
    return crc


@function
def _next(record: int, records: int, transactions: int, out: Out, backlog: Backlog) -> int:
    """Return the kind of the next record: a full op, a due one, a half while too few have begun, or a message."""
    due, waiting, _reach, counts = backlog
    slot = record % len(due)
    if counts[BYTES] < OP_SIZE and due[slot, DUE] == ROLLBACK:
        line = (ROLLBACK, due[slot, BIRTH], 0, 0, 0, due[slot, NUMBER], due[slot, POSITION], due[slot, TIMES])
        _add_client_line(out[-1], counts, line)
        _wait_for_op(waiting, counts, due[slot, NUMBER])
        due[slot, DUE] = MESSAGE
    if counts[BYTES] >= OP_SIZE or (record == records - 1 and counts[BYTES] > 0):
        if due[slot, DUE] != MESSAGE:  # its turn is later
            later = _free(due, record + 1)
            due[later] = due[slot]
            due[slot, DUE] = MESSAGE
        return OP
    then: int = due[slot, DUE]
    if then != MESSAGE:
        return then
    return HALF if counts[BEGUN] * records < transactions * record else MESSAGE


@function
def _go_on(
    what: int, record: int, birth: int, version: tuple[int, ...], seed: int, patience: int, backlog: Backlog
) -> None:
    """Schedule the next record of a transaction."""
    due, waiting, _reach, counts = backlog
    slot = record % len(due)
    if what in (PUT_BACK, FINAL, PARKED):
        due[slot, DUE] = MESSAGE
    if what == HALF:
        counts[BEGUN] += 1
    if what == FINAL:
        _wait_for_op(waiting, counts, due[slot, NUMBER])
    if what in (HALF, PUT_BACK):
        then, wait = _fate(_random_bits(seed + 1, birth), version[2], patience)
        at = _free(due, record + wait)
        due[at, DUE], due[at, BIRTH] = then, birth
        due[at, NUMBER], due[at, POSITION], due[at, TIMES] = version


@function
def _fate(chance: np.int64, times: int, patience: int) -> tuple[int, Int]:
    """Return the fate of a half with so many renewals, and the number of records until then."""
    hundredth, soon, late = (
        chance % 100,
        1 + (chance >> 8) % (patience // 5),
        patience + (chance >> 8) % (patience // 4),
    )
    if times < (hundredth >= 95) + (hundredth >= 98) + (hundredth >= 99):
        return PUT_BACK, late
    if hundredth == 99:
        return PARKED, late
    return (FINAL if hundredth < 57 or hundredth in (95, 96, 98) else ROLLBACK), soon


@function
def _free(due: Ints, record: int) -> int:
    """The place of a record for which nothing is due yet, or of the first one behind it."""
    while due[record % len(due), DUE] != MESSAGE:
        record += 1
    return record % len(due)


@function
def _wait_for_op(waiting: Ints, counts: Ints, number: int) -> None:
    waiting[counts[WAITING]] = number
    counts[WAITING] += 1
    counts[BYTES] += _digits(number) + 1


@function
def _put_numbers(target: Bytes, at: int, waiting: Ints, counts: Ints) -> Int:
    """All numbers that wait, each with a comma behind it; they wait no more. Returns the end of them."""
    highest: Int = 0
    for number in waiting[: counts[WAITING]]:
        digits = _digits(number)
        for digit in range(digits):
            target[at + digit] = 48 + number // POWERS[digits - 1 - digit] % 10
        target[at + digits] = 44
        at += digits + 1
        highest = max(highest, number)
    counts[WAITING] = counts[BYTES] = 0
    return highest + 1


@function
def _digits(number: int) -> int:
    digits = 1
    while number > 9:
        number //= 10
        digits += 1
    return digits


@function
def _add_client_line(client_lines: Ints, counts: Ints, line: tuple[int, ...]) -> None:
    for column in range(CLIENT_COLUMNS):
        client_lines[counts[CLIENT_LINES], column] = line[column]
    counts[CLIENT_LINES] += 1


@function
def _random_bits(seed: int, record: int) -> np.int64:
    """63 bits of splitmix64: record *n* is the same however the records are batched."""
    bits = np.uint64(seed) + np.uint64(record) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((bits ^ (bits >> np.uint64(31))) >> np.uint64(1))


@function
def _put(target: Bytes, at: Int, width: int, value: Int) -> None:
    for byte in range(width):
        target[at + byte] = value >> 8 * (width - 1 - byte) & 0xFF


@function
def _put_hexadecimal(target: Bytes, at: Int, value: int) -> None:
    for digit in range(16):
        nibble = value >> 4 * (15 - digit) & 15
        target[at + digit] = nibble + (48 if nibble < 10 else 55)


@function
def _crc(data: Bytes, start: Int, end: Int, tables: Ints) -> np.int64:
    """CRC-32, eight bytes at a time; nothing of zlib's, so that zlib can judge it."""
    crc, at = np.int64(0xFFFFFFFF), start
    while at + 8 <= end:
        for byte in range(4):
            crc ^= np.int64(data[at + byte]) << 8 * byte
        folded = np.int64(0)
        for byte in range(4):
            folded ^= tables[7 - byte, crc >> 8 * byte & 255] ^ tables[3 - byte, data[at + 4 + byte]]
        crc = folded
        at += 8
    while at < end:
        crc = tables[0, (crc ^ data[at]) & 255] ^ crc >> 8
        at += 1
    return crc ^ 0xFFFFFFFF


# The reader. It knows the format from docs/rocketmq.md, and shares nothing with the writer above.


@dataclass(frozen=True)
class Extent:
    """The size of a store, by its queues."""

    records: int
    bytes: int  # of the log, up to the end of the last record


def extent(store: Path) -> Extent:
    """Found without reading the log."""
    queues = [_entries(path) for path in store.glob("consumequeue/*/*")]
    lasts = [queue[-1].tolist() for queue in queues if len(queue)]
    return Extent(sum(map(len, queues)), max((position + size for position, size, _ in lasts), default=0))


@dataclass(frozen=True)
class Verification:
    """The counts of a correct store."""

    records: int
    read_in_full: int
    files: int
    bytes: int  # of records


def verify(store: Path, every: int = 97) -> Verification:
    """Follow every record from head to head, read one in `every` in full, and compare the queues with them.

    Raises `AssertionError` if the store is not as after a clean stop.
    """
    queues = {f"{path.parent.name}/{path.name}": _entries(path) for path in store.glob("consumequeue/*/*")}
    paths = sorted((store / "commitlog").iterdir())
    starts, clock, room, used, read = array("q"), 0, 0, 0, 0
    for path in paths:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as log:
            base, first = int(path.name), len(starts)
            _need(base == int(paths[0].name) + len(log) * paths.index(path), "files follow each other", path)
            end, clock = _follow(log, base, starts, clock)
            (size,) = struct.unpack_from(">I", log)
            _need(end > 0 and size + 8 > room, "its first record had no room in the file before", path)
            for start in starts[first::every]:
                _read_in_full(log, start, base, queues)
                read += 1
            room, used = len(log) - end, used + end
            blank = b"" if path == paths[-1] else struct.pack(">II", room, 0xCBD43194)
            _need(log[end : end + len(blank)] == blank, "a blank takes the rest of the file", path, end)
            for at in range(end + len(blank), len(log), 2**20):
                _need(not log[at : at + 2**20].strip(b"\0"), "only zeros follow", path, at)
    _every_record_has_its_entry(starts, queues)
    stamps = struct.unpack_from(">qq", (store / "checkpoint").read_bytes())
    _need(max(stamps) <= clock, "the checkpoint is not ahead of the log", *stamps, clock)
    _need((store / "checkpoint").stat().st_size == 4096, "a checkpoint takes a page")
    topics = json.loads((store / "config" / "topics.json").read_text())["topicConfigTable"]
    for name in queues:
        topic, queue = name.split("/")
        _need(int(queue) < topics[topic]["writeQueueNums"], "the topic has such a queue", name)
    _need(not (store / "abort").exists(), "the stop was clean")
    return Verification(len(starts), read, len(paths), used)


def _follow(log: mmap.mmap, base: int, starts: array[int], clock: int) -> tuple[int, int]:
    """Return the end of a file's records, and the last store timestamp; `starts` gets all of their beginnings."""
    at = 0
    while at + 88 <= len(log):
        size, magic, stored = struct.unpack_from(">II48xq", log, at)
        if magic != 0xDAA320A7:
            break
        _need(at + size + 8 <= len(log), "there is room for a blank behind a record", base, at)
        _need(stored >= clock, "store timestamps do not step back", base, at)
        starts.append(base + at)
        at, clock = at + size, stored
    return at, clock


def _read_in_full(log: mmap.mmap, start: int, base: int, queues: dict[str, Entries]) -> None:
    """Sizes, checksum, position and properties agree, and the record's entry names it."""
    size, _, crc, queue, _, number, position = struct.unpack_from(">IIIIIqq", log, start - base)
    record = log[start - base : start - base + size]
    (length,) = struct.unpack_from(">I", record, 84)
    body, rest = record[88 : 88 + length], record[88 + length :]
    topic, rest = rest[1 : 1 + rest[0]].decode(), rest[1 + rest[0] :]
    (length,) = struct.unpack_from(">H", rest)
    fields = rest[2:].decode().removesuffix("\x02").split("\x02")
    properties = dict(field.split("\x01") for field in fields)
    _need(length == len(rest) - 2, "the lengths add up", start)
    _need(crc == zlib.crc32(body) & 0x7FFFFFFF, "the checksum is the body's", start)
    _need(position == start, "the record knows its position", start, position)
    code = 0
    for letter in properties.get("TAGS", ""):
        code = (31 * code + ord(letter) + 2**31) % 2**32 - 2**31
    entry = queues[f"{topic}/{queue}"][number].tolist()
    _need(entry == (start, size, code), "the entry names its record", start, entry)


def _entries(queue: Path) -> Entries:
    """The entries of a queue that begins at number 0; behind the last there are only zeros."""
    paths = sorted(queue.iterdir())
    sizes = {path.stat().st_size for path in paths}
    _need(len(sizes) == 1, "files of a queue are equally long", queue)
    bases = [int(path.name) for path in paths]
    _need(bases == [k * min(sizes) for k in range(len(paths))], "no file of a queue is missing", queue)
    data = b"".join(path.read_bytes() for path in paths)
    entries = np.frombuffer(data, ENTRY)
    count = int((entries["size"] > 0).sum())
    _need(not data[count * 20 :].strip(b"\0"), "the entries come first, zeros after them", queue)
    _need(len(data) - count * 20 < min(sizes), "the last file has an entry", queue)
    return entries[:count]


def _every_record_has_its_entry(starts: array[int], queues: dict[str, Entries]) -> None:
    for name, entries in queues.items():
        _need(bool((np.diff(entries["position"]) > 0).all()), "entries are in log order", name)
    indexed = np.sort(np.concatenate([entries["position"] for entries in queues.values()]))
    _need(np.array_equal(indexed, np.frombuffer(starts, np.int64)), "every record has one entry")


def _need(condition: bool, sentence: str, *here: object) -> None:  # noqa: FBT001 - as in `assert`
    if not condition:
        raise AssertionError(sentence, *here)


def main() -> None:
    """Make a store, or read one back, or both."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bigstore", description=__doc__)
    parser.add_argument("store", type=Path, metavar="DIR")
    parser.add_argument("--records", type=int, default=0, help="make a store of so many records in DIR")
    parser.add_argument("--file-size", type=int, default=Shape.file_size, help="bytes of a commit-log file")
    parser.add_argument("--topics", type=lambda names: tuple(names.split(",")), default=Shape.topics)
    parser.add_argument("--queues", type=int, default=Shape.queues, help="queues of each topic")
    parser.add_argument("--body", type=int, default=Shape.body, help="mean bytes of a body")
    parser.add_argument("--seed", type=int, default=Shape.seed)
    parser.add_argument("--transactions", type=int, default=0, help="of so many halves; DIR gets a client log, too")
    parser.add_argument("--verify", nargs="?", type=int, const=97, metavar="EVERY", help="read it back")
    chosen = vars(parser.parse_args())
    store, every = chosen.pop("store"), chosen.pop("verify")
    if chosen["records"]:
        began = time.perf_counter()
        shape = Shape(**chosen)
        if shape.transactions:
            make_with_clients(store, shape)
        else:
            make(store, shape)
        print(f"{store}: {chosen['records']:,} records made in {time.perf_counter() - began:.1f} s")
    if every:
        began = time.perf_counter()
        inner = store / "store"
        print(f"{verify(inner if inner.exists() else store, every)}, verified in {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
