"""Queues in tiered storage, held against their metadata, their own messages, and the broker's own log.

The store's log and queues were judged before. What the uploader had not committed, beyond the end that the metadata
tells, is judged by nobody.

Source: docs/rocketmq-tiered.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gapless.spec.catalog import SPECS, State
from gapless.traces.judging.building import STEPS, Events, states
from gapless.traces.options import Options
from gapless.traces.replay.exact import replay
from gapless.traces.replay.kernels import kernel
from gapless.traces.sources.rocketmq.joining.judged import JoinedQueue, JudgedStore
from gapless.traces.sources.rocketmq.segments.extensions import EXTENDED
from gapless.traces.sources.rocketmq.segments.tasks import name_of
from gapless.traces.sources.rocketmq.segments.tiered_records import TieredMessages, differences, messages_between
from gapless.traces.sources.rocketmq.store import file_access
from gapless.traces.sources.rocketmq.store.bytes import Ints
from gapless.traces.sources.rocketmq.store.files import ENTRY, SLOT, LogFile, read_exactly
from gapless.traces.sources.rocketmq.store.records import HEADER
from gapless.traces.sources.rocketmq.store.settings import number_set
from gapless.traces.sources.rocketmq.store.tiered_files import TieredFile, TieredQueue, TieredStorage, tiered_storage
from gapless.traces.sources.rocketmq.store.wanted import wants

TIERED = STEPS["tiered"]
SPEC = SPECS["tiered"]
AT_ONCE = 1 << 14  # entries that are followed at once
RESERVED, RESERVED_HOURS = "tieredStoreFileReservedTime", 72  # a setting, and what it is where nobody says
BORN, STORED = slice(40, 48), slice(56, 64)  # of a record: when it was sent, and stored, if its sender has IPv4
Truths = npt.NDArray[np.bool_]


class JoinedTiered:
    """The tiered storage of a store whose log and queues were judged."""

    def __init__(self, judged: JudgedStore, options: Options) -> None:
        self.judged = judged
        self.store = judged.store
        self.options = options

    def hold(self) -> None:
        """Judge every queue that has files there."""
        notes: list[str] = []
        found = tiered_storage(Path(self.store.path), self.store.settings, notes)
        if found is None:
            return
        for text in notes:
            self.judged.note(text)
        if why_not := self._moment() or found.why_not:
            say = self.judged.doubt if found.lost and not self._moment() else self.judged.note
            say(f"tiered storage is not judged: {why_not}")
            return
        self._judge(found)

    def _moment(self) -> str:
        """Why files and metadata of this store need not agree; nothing where they must."""
        if self.store.live or self.store.watched:
            return "a broker is running on this store; `gapless check` judges it once the broker has stopped"
        return "its files and their metadata are of different moments" if self.store.copied else ""

    def _judge(self, found: TieredStorage) -> None:
        """Every queue of it, and what the metadata leaves out."""
        if found.untold:
            count = len(found.untold)
            self.judged.doubt(
                f"tiered storage holds {count:,} file{'s' * (count > 1)} that its metadata does not tell of, the first "
                f"{found.untold[0]}: the metadata is incomplete, and consumers receive nothing of what lies there"
            )
        if found.has_index:
            self.judged.note("the index of tiered storage is not judged")
        followed = compared = queues = 0
        for queue in found.queues:
            if not wants(self.options, *queue.queue):
                continue
            if queue.queue in self.store.batched:
                self.judged.note("queues of inner batches are not judged in tiered storage")
                continue
            held = HeldQueue(self.judged, self.options, queue)
            held.hold()
            followed, compared, queues = followed + held.followed, compared + held.compared, queues + 1
        self.judged.note(
            f"{followed:,} entries in tiered storage, of {queues:,} queue{'s' * (queues != 1)}, were followed to their "
            f"messages; {compared:,} of these the broker's own log has too"
        )


class HeldQueue:
    """One queue in tiered storage. `followed`, `compared`: how many messages were found, and are the log's own."""

    def __init__(self, judged: JudgedStore, options: Options, tiered: TieredQueue) -> None:
        self.judged = judged
        self.store = judged.store
        self.options = options
        self.tiered = tiered
        self.name = name_of(tiered.queue)
        self.log = self._without_expired(tiered.log)
        self.entries = self._without_expired(tiered.entries)
        self.files = [file.opened for file in self.log]
        self.state = states(SPEC, 1)
        self.followed = 0
        self.compared = 0

    def _without_expired(self, files: tuple[TieredFile, ...]) -> tuple[TieredFile, ...]:
        """The files but for the oldest that are gone, where a broker may have been killed while it deleted them.

        They go one by one, each before its metadata does; and a start makes the file anew, without a byte. So a broker
        that is killed leaves one such file, whose messages have all expired: more are no trace of that.
        """
        gone = 0
        while gone < len(files) and (
            (files[gone].length < 0 and not self.store.clean)
            or (files[gone].length == 0 < files[gone].told and not self.store.first_life)
        ):
            gone += 1
        if not gone:
            return files
        where = f"{self.name} in tiered storage"
        if gone == len(files):
            self.judged.doubt(
                f"{where}: not one of its files holds what its metadata says is committed: they expired all together, "
                "or are lost"
            )
        elif gone > 1 or not self._is_due(files[0]):
            what = f"{gone:,} of its oldest files hold" if gone > 1 else f"its oldest file, {files[0].name}, holds"
            why = (
                "a broker deletes them one by one, each with its metadata"
                if gone > 1
                else "no record of the log is so young that its messages would have expired"
            )
            self.judged.doubt(f"{where}: {what} nothing, and {why}: their messages are lost, or the power was")
        else:
            self.judged.note(f"{where}: its oldest file, {files[0].name}, holds nothing, and counts as expired")
        return files[gone:]

    def _is_due(self, file: TieredFile) -> bool:
        """Whether a file's messages were old enough to be deleted when the log was last known to be written."""
        kept = (number_set(self.store.settings, RESERVED) or RESERVED_HOURS) * 3_600_000
        known = self.store.checkpoint
        return known is not None and file.youngest < known.log - kept

    def hold(self) -> None:
        """Judge the queue up to the first step that departs."""
        if not self.entries:
            return
        first = self.entries[0].base // ENTRY
        start = self.log[0].base if self.log else 0
        told = [
            TIERED.open(start=start, number=first),
            *(TIERED.find_log_file(base=f.base, told=f.told, length=max(f.length, 0)) for f in self.log),
            *(
                TIERED.find_queue_file(
                    number=f.base // ENTRY, told=_entries(f, f.told), length=_entries(f, max(f.length, 0))
                )
                for f in self.entries
            ),
        ]
        if not self._take(Events.of(SPEC, told)) or not self.log:
            return
        low, end = first, self.entries[-1].end // ENTRY
        while low < end:
            events, details = self._followed(low, min(low + AT_ONCE, end), start)
            if not self._take(events, details):
                return
            low += len(events.action)

    def _take(self, events: Events, details: Ints | None = None) -> bool:
        """Replay events from where the last ones led to, and say whether all were accepted.

        `details`: of each the byte of its message in which it differs from the log's, or -1
        """
        count = len(events.action)
        replayed = kernel("tiered", self.options.ignored).replay(
            np.array([0, count], np.int64), events.action, events.args, self.state, profile=self.options.profile
        )
        self.state = replayed.state
        self.judged.cover("tiered", dict(zip(SPEC.actions, replayed.covered.tolist(), strict=True)))
        bad = int(replayed.bad_at[0])
        if self.judged.exported:
            told = [events.at(n) for n in range(count if bad < 0 else bad + 1)]
            self.judged.joint(self.judged.end, "tiered", self.name, told)
        if bad < 0:
            return True
        before: State = replace(SPEC.initial, **dict(zip(SPEC.scalars, self.state[:, 0].tolist(), strict=True)))
        event = events.at(bad)
        outcome = replay("tiered", before, [event], profile=self.options.profile, ignored=self.options.ignored)
        if outcome.departure:
            detail = int(details[bad]) if details is not None else -1
            self.judged.tell(self.name, self.store.start, outcome.departure, str(detail) if detail >= 0 else "")
        return False

    # -- entries and their messages ----------------------------------------------------------------------------------

    def _followed(self, low: int, high: int, start: int) -> tuple[Events, Ints]:
        """Entries from number `low` on, at most to `high`, up to one behind which messages are not in order."""
        slots = self._slots(low, high)
        positions, sizes, tags = (slots[name].astype(np.int64) for name in ("position", "size", "tag"))
        ends, last = positions + sizes, self.files[-1].base + self.files[-1].length
        wrong = (sizes <= 0) | (positions < 0) | (ends > last)
        wrong[1:] |= positions[1:] < ends[:-1]
        kept = int(wrong.argmax()) + 1 if wrong.any() else len(slots)
        positions, sizes, tags = positions[:kept], sizes[:kept], tags[:kept]
        (young,) = np.nonzero(positions >= start)
        within = young[~wrong[young]]
        found = messages_between(
            self.store, self.files, self.tiered.queue,
            *((int(positions[within[0]]), int(ends[within[-1]])) if len(within) else (0, 0)),
        )  # fmt: skip
        events = Events.room(SPEC, kept)
        events.action[:] = SPEC.codes["outlive"]
        events.action[young] = SPEC.codes["find_entry"]
        events.column("number")[:] = np.arange(low, low + kept)
        events.column("position")[:] = positions
        details = np.full(kept, -1, np.int64)
        at = np.minimum(found.position.searchsorted(positions[young]), max(len(found.position) - 1, 0))
        lies = found.position[at] == positions[young] if len(found.position) else np.zeros(len(young), np.bool_)
        of_young = _of(found, at, lies)
        known = of_young["sure"] != 0
        if self.store.extended:
            known &= tags[young] > EXTENDED
        whole = lies & (of_young["whole"] != 0) & (of_young["size"] == sizes[young])
        details[young[whole]] = self._differ(low + young[whole], positions[young[whole]], sizes[young[whole]])
        for name, values in (
            ("size", sizes[young]), ("tag", tags[young]), ("lies", lies), ("same", details[young] < 0),
            ("its_tag", np.where(known, of_young["tag"], tags[young])),
            # Where no message lies, or no whole one, nothing else is said of it: one rule is broken, not eight.
            ("whole", of_young["whole"] | ~lies), ("owned", of_young["owned"] | ~lies),
            ("its_number", np.where(lies, of_young["number"], low + young)),
            ("its_position", np.where(lies, of_young["claimed"], positions[young])),
            ("its_size", np.where(lies, of_young["size"], sizes[young])),
            ("intact", of_young["intact"] | ~lies | (of_young["whole"] == 0)),
        ):  # fmt: skip
            events.column(name)[young] = values
        self.followed += int(lies.sum())
        return events, details

    def _slots(self, low: int, high: int) -> npt.NDArray[np.void]:
        """The entries from number `low` to `high`, as the broker asks for them: by their place among all bytes."""
        data = np.zeros((high - low) * ENTRY, np.uint8)
        for file in self.entries:
            begin, end = max(low * ENTRY, file.base), min(high * ENTRY, file.base + max(file.length, 0))
            if begin < end:
                into = data[begin - low * ENTRY : end - low * ENTRY]
                read_exactly(file.opened, begin - file.base, into.data)
        return data.view(SLOT)

    def _differ(self, numbers: Ints, positions: Ints, sizes: Ints) -> Ints:
        """In which byte each message differs from that of the broker's own log; -1 where it does not, or is not there.

        Where the log itself departs, nothing is compared: what is wrong is told once.
        """
        differ = np.full(len(numbers), -1, np.int64)
        run = self.judged.queues.get(self.tiered.queue)
        if run is None or run.ended or not len(numbers) or self._log_departs:
            return differ
        places, theirs = self._own(run, numbers)
        (both,) = np.nonzero(theirs > 0)
        fits = theirs[both] == sizes[both]
        differ[both[~fits]] = 0
        same_size = both[fits]
        differ[same_size] = differences(
            self.files, positions[same_size], self.store.files, places[same_size], sizes[same_size]
        )
        self.compared += int((differ[both] < 0).sum())
        (others,) = np.nonzero(differ >= 0)
        if len(others) and not self.store.first_life:
            first = int(others[0])
            if self._is_another(int(positions[first]), int(places[first])):
                self._doubt_lost(int(numbers[first]))
                differ[others] = -1
        return differ

    def _is_another(self, position: int, place: int) -> bool:
        """Whether two messages of one number were sent at different times, so that none is the other, damaged."""
        uploaded, own = _header_in(self.files, position), _header_in(self.store.files, place)
        return uploaded[STORED] != own[STORED] and uploaded[BORN] != own[BORN]

    def _doubt_lost(self, number: int) -> None:
        """Messages in tiered storage are others than those of the log that have their numbers."""
        self.judged.doubt(
            f"messages of {self.name}, from number {number} on, are others in tiered storage than in the log: legal if "
            "the log lost its end in a power loss after they were uploaded, and gave their numbers again; damage "
            "otherwise"
        )

    @property
    def _log_departs(self) -> bool:
        return bool(self.judged.damage) or any(found.spec == "log" for found in self.judged.breaches)

    def _own(self, run: JoinedQueue, numbers: Ints) -> tuple[Ints, Ints]:
        """Where the broker's own log has the messages of these numbers, and their sizes; 0 where it has none."""
        low, high = int(numbers[0]), int(numbers[-1]) + 1
        data = np.zeros((high - low) * ENTRY, np.uint8)
        file_access.read_entries(self.store, *self.tiered.queue, low, data.data)
        slots = data.view(SLOT)[numbers - low]
        places, sizes = slots["position"].astype(np.int64), slots["size"].astype(np.int64)
        there = (numbers >= max(run.first, run.blank)) & (numbers < run.indexed)
        there &= (places >= self.store.start) & (places + sizes <= self.judged.end)
        return places, np.where(there, sizes, 0)


def _header_in(files: Sequence[LogFile], position: int) -> bytes:
    """The bytes of a record up to its body, at a position of a log."""
    file = next(file for file in files if file.base <= position < file.base + file.length)
    data = np.zeros(min(HEADER, file.base + file.length - position), np.uint8)
    read_exactly(file, position - file.base, data.data)
    return data.tobytes()


def _entries(file: TieredFile, length: int) -> int:
    """How many entries end in the first bytes of a file."""
    return (file.base + length) // ENTRY - file.base // ENTRY


def _of(found: TieredMessages, at: Ints, lies: Truths) -> dict[str, Ints]:
    """The fields of some messages, zeros where none lies."""
    if not len(found.position):
        return {name: np.zeros(len(at), np.int64) for name in TieredMessages._fields}
    return {name: np.where(lies, column[at], 0) for name, column in found._asdict().items()}
