"""Opens a store directory before any record is read, with the files of layouts that workers need.

Nothing is judged here except that the directory can be read. Layouts that are not judged are named in
`StoreDirectory.notes`, and so is everything that was used without being asked for (a `broker.conf` next to the store).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gapless.traces.problems import NothingThere, Unreadable, shown
from gapless.traces.sources.rocketmq.layouts import message_database, registry
from gapless.traces.sources.rocketmq.layouts.layout import Layout, Opens
from gapless.traces.sources.rocketmq.log.dledger import dledger_of, empty_dledger
from gapless.traces.sources.rocketmq.log.dledger_entries import ENTRY_HEADER
from gapless.traces.sources.rocketmq.queues.batch_queues import batch_queues
from gapless.traces.sources.rocketmq.queues.served_queues import (
    opener,
    served_queues,
    shares_records,
)
from gapless.traces.sources.rocketmq.store.directory import CHECK_GROUP, Cursors, StoreDirectory, is_locked
from gapless.traces.sources.rocketmq.store.files import (
    FARTHEST,
    LogFile,
    log_files,
    log_folders,
    queue_file_size,
    queue_files,
)
from gapless.traces.sources.rocketmq.store.flush_times import flush_times
from gapless.traces.sources.rocketmq.store.names import HALF_TOPIC, OP_TOPIC
from gapless.traces.sources.rocketmq.store.settings import (
    DELAY_LEVELS,
    delays,
    is_on,
    is_there,
    length_set,
    read_json_or_older,
    store_settings,
)
from gapless.traces.sources.rocketmq.store.snapshot import now
from gapless.traces.sources.rocketmq.store.topics import CURSOR_FILES, has_database, is_modern, saved_topics

OTHER_LAYOUTS = {"kvStore": "what pop consumers were handed, in RocksDB (popConsumerKVServiceEnable)"}


def open_store(
    path: Path,
    config: Path | None = None,
    *,
    copied: bool = False,
    bare: bool = False,
    opens: Mapping[str, Opens] | None = None,
) -> StoreDirectory:
    """Opens the store in folder `path`. Raises Unreadable, NothingThere.

    `config`: a broker.conf; without it, one next to the store is used, with a note · `copied`: as in `StoreDirectory`
    · `bare`: queues in a database are not copied, and no files of layouts are opened but those in `opens`, which has
    other ways to open some.
    """
    notes: list[str] = []
    settings = store_settings(path, config, notes)
    dledger = dledger_of(path, settings)
    folders = log_folders(path, settings, notes, before_dledger=dledger is not None)
    folders += [dledger.data] if dledger else []
    if not any(folder.is_dir() for folder in folders):
        raise _without_a_log(path)
    there = log_files(folders, settings, notes, {dledger.data: ENTRY_HEADER} if dledger else {})
    live = is_locked(path / "lock")
    files = _behind_gaps(there) if copied and not live else there
    if files[0].base:
        notes.append(f"the log begins at {files[0].base:,}: everything below counts as expired")
    strays: list[str] = []
    found = served_queues(path, settings, notes, strays, copies=not bare)
    database, broken, unread = found.database, found.broken, found.unread
    queues = found.queues
    batches = None if unread else batch_queues(path, length_set(settings, "mapperFileSizeBatchConsumeQueue"))
    clean = not (os.path.lexists(path / "abort") or live or copied)
    if clean and dledger and not dledger.settled:
        clean = False
        notes.append(f"the DLedger log's last entries were not known to be committed ({dledger.committed})")
    plain_size = 0 if database else queue_file_size(found.files, length_set(settings, "mappedFileSizeConsumeQueue"))
    queues = {**queues, **batches.queues} if batches else queues
    lights = found.twin if found.lights else None
    moment = now(queues, opener(str(path), database, batches, lights), files) if live else None
    if moment:
        notes.append(f"a broker is running on this store: its state is judged as of {moment}")
    if moment and batches:
        notes.append("batchconsumequeue/ is not judged: a broker is running on this store")
    elif (path / "abort").exists() and not live and not copied:
        notes.append("the broker did not stop in order (there is an abort file)")
    notes.extend(_other_layouts(path))
    topics = saved_topics(path / "config", notes)
    modern = is_modern(topics) or has_database(path / "config")
    opened = dict(_open_layouts((path, settings, files), {link.part for link in broken}, opens or {}, bare=bare))
    notes.extend(note for layout, found in opened.items() for note in layout.opening.notes(found, live))
    return StoreDirectory(
        path=str(path),
        files=files,
        file_size=files[0].length,
        clean=clean,
        live=live,
        copied=copied and not live,
        left_out=len(there) - len(files),
        checkpoint=flush_times(path / "checkpoint", notes),
        settings=settings,
        delays=delays(settings.get("messageDelayLevel", DELAY_LEVELS)) if config else (),
        queues=queues,
        queue_file_size=plain_size,
        no_queues=found.why_none,
        batches=batches,
        extension={} if unread else queue_files(path / "consumequeue_ext"),
        modern=modern,
        before_5=bool(topics) and not modern,
        opened={layout.name: found for layout, found in opened.items()},
        database=database,
        twin=found.twin,
        lights=found.lights,
        shares=shares_records(queues, settings),
        cursors=_cursors(path, settings, notes),
        dledger=dledger,
        notes=tuple(notes),
        moment=moment,
        broken=broken,
        strays=tuple(strays),
        limit=moment.end if moment else FARTHEST,
    )


def _open_layouts(
    place: tuple[Path, Mapping[str, str], Sequence[LogFile]], gone: set[str], opens: Mapping[str, Opens], *, bare: bool
) -> Iterator[tuple[Layout, Any]]:
    """Yields the layouts that open files with a store, and these: of no part with a link that leads nowhere."""
    for layout in registry.LAYOUTS:
        if not layout.opens or not layout.opening.needs.isdisjoint(gone):
            continue
        way = opens.get(layout.name) or (None if bare else layout.opening.opens)
        found = way(*place) if way else None
        if found is not None:
            yield layout, found


def _behind_gaps(files: tuple[LogFile, ...]) -> tuple[LogFile, ...]:
    """The files behind the last one that is missing.

    Files may be copied in any order, and the oldest ones of all expire meanwhile: then some of them are in the copy.
    """
    for at in range(len(files) - 1, 0, -1):
        if files[at].base != files[at - 1].base + files[at - 1].length:
            return files[at:]
    return files


def _without_a_log(path: Path) -> Unreadable | NothingThere:
    """Returns the error for a store without a folder of a log."""
    if not path.is_dir():
        return NothingThere(f"{path}: no such directory")
    if empty := empty_dledger(path):
        return Unreadable(
            f"{path}: the DLedger log in {empty}/ has no file in {empty}/data/, where its entries lie; copy that "
            "folder too, or restore it: without it nothing of this store can be judged"
        )
    if not (path / "consumequeue").exists():
        return NothingThere(f"{path}: no log file in it, and no queue: nothing was ever appended")
    return Unreadable(
        f"{path}: there is no commitlog/ in it; if the log lies elsewhere, a broker.conf with storePathCommitLog says "
        "where (--config)"
    )


def _cursors(path: Path, settings: Mapping[str, str], notes: list[str]) -> Cursors | None:
    """The check service's two cursors. With light queues they stand in a file of their own.

    An older version of the file was written while the broker ran: its two cursors need not agree, and one is taken.

    Source: docs/rocketmq.md#config.
    """
    found = []
    for name in CURSOR_FILES:
        file = path / "config" / name
        if is_there(file):
            content, older = read_json_or_older(file, notes)
            table = content.get("offsetTable")
            op = None if older else _cursor(file, table, OP_TOPIC)
            found.append(Cursors(f"config/{name}{'.bak' * older}", _cursor(file, table, HALF_TOPIC), op))
    if not found and (path / "consumequeue" / HALF_TOPIC).is_dir():
        notes.append("there is no consumerOffset.json: the cursors of the check service are unknown")
    if len(found) == 2:  # light queues were switched on or off: one of the files is old
        light = is_on(settings, "enableLmq")
        return found[light] if settings else min(found, key=lambda c: -1 if c.half is None else c.half)
    return found[0] if found else None


def _cursor(file: Path, table: object, topic: str) -> int | None:
    """The cursor over queue 0 of a topic, or None where it has not moved. Raises Unreadable."""
    if not isinstance(table, dict):
        raise Unreadable(f"{file}: expected an object called offsetTable; copy the file again, or check without it")
    cursors = table.get(f"{topic}@{CHECK_GROUP}", {})
    cursor = cursors.get("0") if isinstance(cursors, dict) else cursors
    if cursor is not None and (not isinstance(cursor, int) or isinstance(cursor, bool) or not 0 <= cursor < FARTHEST):
        raise Unreadable(
            f"{file}: the cursor over {topic} is {shown(json.dumps(cursor))}, expected a number from 0 on and below "
            "2^62; copy the file again, or check a copy of the store without it"
        )
    return cursor


def _other_layouts(path: Path) -> Iterator[str]:
    """Names the layouts in the store that gapless does not judge."""
    for name, what in OTHER_LAYOUTS.items():
        folder = path / name
        if folder.is_dir() and any(e.is_file() and e.stat().st_size > 0 for e in folder.rglob("*")):
            yield f"{name}/ is not judged: {what}"
    yield from message_database.not_judged(path)
