"""Stores that real brokers wrote, what is in them, and copies to damage; `tests/recordings/README.md` lists them."""

import lzma
import shutil
import tarfile
from functools import cache
from pathlib import Path

from tests.support import rooms
from tests.support.rocketmq.store_builder import varied
from tests.support.rocketmq.transaction_broker import VERSIONS, lived
from tests.support.rocketmq.transactions import Counts

RECORDINGS = Path(__file__).parents[2] / "recordings"
CLIENTS = RECORDINGS / "clients"
LAB = [f"lab/{name}" for name in ("made_anew", "quick_stop", "rebuilt", "delays_changed", "blank_slots")]

COUNTS = {  # by the lab's own reader, which is not ours
    "concurrent": Counts(4852, 1215, 418, 550, 18, 734, 75),
    "immunity": Counts(1912, 901, 503, 347, 33, 456, 31),
    "kill9": Counts(4996, 1297, 499, 602, 26, 733, 81),
    "lmq": Counts(649, 101, 41, 35, 6, 51, 9),
    "midlife": Counts(2473, 600, 256, 245, 23, 342, 45),
    "normal": Counts(4897, 1246, 450, 563, 15, 747, 80),
    "normal_533": Counts(4895, 1246, 448, 553, 18, 731, 84),
    "odd_clients": Counts(1231, 252, 90, 163, 78, 223, 22),
    "pop_retry": Counts(277, 34, 11, 17, 5, 21, 2),
    "unclean": Counts(4808, 1205, 416, 552, 15, 680, 71),
    "v4": Counts(5541, 1182, 382, 559, 732, 732, 68),
}
WITH_CLIENTS = sorted(file.name.partition(".")[0] for file in CLIENTS.glob("*.ndjson.xz"))


@cache
def recording(name: str) -> Path:
    """The store of a recording, unpacked once; copy it before you change it."""
    room = _room()
    with tarfile.open(RECORDINGS / f"{name}.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # from Python 3.11.4 on
        archive.extractall(room)  # noqa: S202 - our own archives
    return room / Path(name).name / "store"


def recording_as_left(name: str) -> Path:
    """Return the folder of a recording, with all that lies next to its store."""
    return recording(name).parent


@cache
def recording_with_client(name: str) -> Path:
    """A folder with the `store/` of a recording, its `client.ndjson`, and its `broker.conf` if it has one.

    The store is a link to that of `recording`, which thereby stays without a client's word.
    """
    store = recording(name)
    folder = _room() / "with-client" / name
    folder.mkdir(parents=True)
    (folder / "store").symlink_to(store)
    if (store.parent / "broker.conf").exists():
        shutil.copy(store.parent / "broker.conf", folder)
    (folder / "client.ndjson").write_bytes(lzma.decompress((CLIENTS / f"{name}.ndjson.xz").read_bytes()))
    return folder


@cache
def _room() -> Path:
    return rooms.room("recordings")


@cache
def varied_store(seed: int) -> Path:
    """A varied store, written once; copy it before you change it."""
    return varied(seed).write(_room() / f"varied-{seed}")


@cache
def store_of_a_life(version: str, seed: int) -> Path:
    """The folder of a store with transactions, of a client log and a `broker.conf`, written once."""
    (known,) = (known for known in VERSIONS if known == version)
    folder = _room() / f"life-{version}-{seed}"
    folder.mkdir()
    lived(seed, version=known).write(folder)
    return folder


def copy_of(store: str, room: Path, *, client: bool = False) -> Path:
    """Copy a store to damage into `room`, with its settings and, if it is wanted, its client log.

    It is a recording by its name; or one of our own by its seed: `varied 1`, or a life by version and seed, `5.5.0 1`.
    """
    kind, _, seed = store.partition(" ")
    copy = room / "copy"
    if kind == "varied":
        return shutil.copytree(varied_store(int(seed)), copy / "store")
    shutil.copytree(store_of_a_life(kind, int(seed)) if seed else recording(store).parent, copy)
    log = copy / "client.ndjson"
    if not client:
        log.unlink(missing_ok=True)
    elif not log.exists():
        log.write_bytes(lzma.decompress((CLIENTS / f"{store}.ndjson.xz").read_bytes()))
    return copy / "store"
