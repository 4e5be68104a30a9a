"""Object code that is sent to other hosts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from gapless.native import Function
from gapless.native.objects import cache, object_code, shipment
from gapless.traces.engines.spark.archive import archive
from gapless.traces.judging import columns


def doubled(value: int) -> int:
    return value + value


def twice(value: int) -> int:
    """The answer of native code, which this host compiles or loads."""
    function: Any = Function(cast("Any", doubled))
    found: int = function.code(value)
    return found


class Hosts:
    """Two hosts: each has a cache of its own."""

    def __init__(self, room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room, self.monkeypatch = room, monkeypatch
        self.compiled = 0
        compiles = object_code.ObjectCode._compiled

        def counted(code: object_code.ObjectCode, kinds: object) -> object:
            self.compiled += 1
            return compiles(code, kinds)  # type: ignore[arg-type]

        monkeypatch.setattr(object_code.ObjectCode, "_compiled", counted)

    def go_to(self, name: str) -> Path:
        """Use the cache of that host."""
        folder = self.room / name
        folder.mkdir(mode=0o700, exist_ok=True)
        for module in (cache, object_code, shipment):
            self.monkeypatch.setattr(module, "cache_folder", lambda: folder)
        self.monkeypatch.setattr(cache, "_USED", {})
        cache.files.cache_clear()
        return folder


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hosts:
    return Hosts(tmp_path, monkeypatch)


def test_what_one_host_has_compiled_another_one_loads(hosts: Hosts) -> None:
    hosts.go_to("here")
    assert shipment.packed() is None
    assert twice(21) == 42
    sent = shipment.packed()
    assert sent is not None
    there = hosts.go_to("there")
    assert shipment.unpack(sent) == len(sent.files) == 1
    assert shipment.unpack(sent) == 0, "it is there"
    assert twice(21) == 42
    assert hosts.compiled == 1
    assert all(cache.is_ours(file) for file in there.glob("*.o"))


def test_another_processor_compiles_as_if_nothing_had_come(hosts: Hosts) -> None:
    hosts.go_to("here")
    assert twice(21) == 42
    sent = shipment.packed()
    assert sent is not None
    there = hosts.go_to("there")
    assert shipment.unpack(sent._replace(machine=("0.1", "z80", ""))) == 0
    assert not [*there.iterdir()]
    assert twice(21) == 42
    assert hosts.compiled == 2


def test_what_is_not_whole_or_names_another_folder_is_not_kept(hosts: Hosts) -> None:
    hosts.go_to("here")
    assert twice(21) == 42
    sent = shipment.packed()
    assert sent is not None
    ((name, content),) = sent.files.items()
    there = hosts.go_to("there")
    bad = {name: content[:-1], f"../{name}": content, "empty": b"", "no-digest": b"{}\n"}
    assert shipment.unpack(sent._replace(files=bad)) == 0
    assert not [*there.iterdir()]
    assert {*there.parent.iterdir()} == {there, there.parent / "here"}


FROM_ARCHIVE = """
from gapless.native.objects import object_code
from gapless.traces.judging import columns
print(columns.__file__)
print(columns._hash.compiled.code._digest)
columns._hash.compiled.code.load()
print(object_code.COMPILATIONS.count)
"""


def test_a_worker_that_has_gapless_from_an_archive_finds_the_same_code(tmp_path: Path) -> None:
    """It found no text in there: it could compile nothing, and took code of other texts for its own."""
    paths = [str(archive(tmp_path)), *(path for path in sys.path if "site-packages" in path)]
    known = columns._hash.compiled.code
    known.load()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "GAPLESS_CACHE": str(cache.cache_folder())}
    for compiled, more in ((0, {}), (1, {"GAPLESS_CACHE": str(tmp_path / "empty")})):
        command = [sys.executable, "-c", FROM_ARCHIVE]
        places = environment | more
        ran = subprocess.run(command, cwd=tmp_path, env=places, capture_output=True, text=True, check=True)
        place, digest, count = ran.stdout.split()
        assert ".zip/gapless" in place
        assert (digest, int(count)) == (known._digest, compiled)
