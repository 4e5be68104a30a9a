"""A folder in which command lines go wrong: stores, events, other brokers' files, archives, settings."""

import json
import os
import tarfile
import zipfile
from pathlib import Path

from gapless.traces.events import schema
from tests.support.event_files import QUEUE
from tests.support.rocketmq.store_builder import StoreBuilder
from tests.support.rocketmq.stores import Record

HEADER = '{"schema":"gapless-events","version":1}\n'
EVENT = {
    "source": "me",
    "spec": "queue",
    "trace": "orders/0",
    "position": 0,
    "action": "open",
    "args": {"number": 0, "start": 0},
}


def make_folder(folder: Path) -> None:
    """Fill a folder with one of each kind."""
    _stores(folder)
    _others(folder)
    _texts(folder)
    _events(folder)


def _stores(folder: Path) -> None:
    builder = StoreBuilder()
    for number in range(8):
        builder.append(Record("orders" if number % 2 else "payments", queue=number % 2, body=b"one of eight"))
    store = builder.write(folder / "store")
    (folder / "deep/data/orders").parent.mkdir(parents=True)
    builder.write(folder / "deep/data/orders")
    homes = {"home": f"storePathRootDir={store}", "bare": "brokerName=a", "gone": "storePathRootDir=/x/y"}
    for home, setting in homes.items():
        (folder / home / "conf").mkdir(parents=True)
        (folder / home / "conf/broker.conf").write_text(f"{setting}\n")
    with tarfile.open(folder / "store.tar.gz", "w:gz") as packed:
        packed.add(store, "broker-a")
    with zipfile.ZipFile(folder / "store.zip", "w") as zipped:
        zipped.writestr("broker-b/commitlog/00000000000000000000", b"")


def _others(folder: Path) -> None:
    (folder / "kafka/orders-0").mkdir(parents=True)
    for name in ("meta.properties", "orders-0/00000000000000000000.log", "orders-0/00000000000000000000.index"):
        (folder / "kafka" / name).write_text("x")
    (folder / "rabbit/msg_stores").mkdir(parents=True)
    (folder / "logs").mkdir()
    (folder / "logs/broker.log").write_text("2026-01-01 INFO started\n")
    (folder / "empty").mkdir()
    (folder / "broken").symlink_to("nowhere")
    os.mkfifo(folder / "pipe")


def _texts(folder: Path) -> None:
    for name, text in {
        "orders.csv": "id,queue\n1,0\n",
        "orders.json": '{"id": 1}',
        "app.log": "started\n",
        "nothing.bin": "",
        "known.json": '{"schema": 1, "findings": [{"rule": "a"}]}',
        "bad.conf": "1. just words\n",
        "client.txt": "hello\n",
        "report.json": '{"verdict": "conforms", "sources": [], "findings_total": 0}',
        "lease.py": "STATES = ()\n",
        "00000000000000000000": "x",
    }.items():
        (folder / name).write_text(text)


def _events(folder: Path) -> None:
    schema.write_events(folder / "good.ndjson", [event(at) for at, event in enumerate(QUEUE)])
    (folder / "unnamed.txt").write_bytes((folder / "good.ndjson").read_bytes())
    wrong = {
        "fields": {"src": "me", "pos": 0} | {name: EVENT[name] for name in ("spec", "trace", "action", "args")},
        "typo": {**{name: EVENT[name] for name in EVENT if name != "position"}, "positon": 0},
        "float": EVENT | {"position": 1.5},
        "text": EVENT | {"args": {"number": "0", "start": 0}},
        "action": EVENT | {"action": "opens"},
        "spec": EVENT | {"spec": "queues"},
        "args": EVENT | {"args": {"num": 0, "start": 0}},
        "outcome": EVENT | {"outcome": "OK"},
        "saw": EVENT | {"saw": {"ends": 1}},
        "list": [1, 2],
    }
    for name, event in wrong.items():
        (folder / f"{name}.ndjson").write_text(f"{HEADER}{json.dumps(event)}\n")
    (folder / "clients.ndjson").write_text('{"op":"send","topic":"a","queue":0,"result":"ok"}\n')
    (folder / "header.ndjson").write_text(f"{json.dumps(EVENT)}\n")
    (folder / "cut.ndjson").write_text(f"{HEADER}{json.dumps(EVENT)}")
    (folder / "syntax.ndjson").write_text(f"{HEADER}{{'source': 1}}\n")
