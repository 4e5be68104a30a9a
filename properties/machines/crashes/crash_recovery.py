"""The lives of a store: it is opened, used, lost, found again and compared with what its client knows."""

from __future__ import annotations

from collections.abc import Callable

from gapless.properties.machines.crashes.client_oracle import ClientOracle
from gapless.properties.machines.crashes.store_client import CrashTally, StoreClient
from gapless.properties.machines.mismatch import Mismatch
from gapless.properties.simulation.simulated_disk import PowerLost, SimulatedDisk
from gapless.properties.subject import ENDLESS, SubjectLayout, path_of
from gapless.spec import queue as queue_spec
from gapless.spec.language import Position

FILES = (4096, 2048, 8192)  # bytes of a log file: a dozen records
ENTRIES = (5, 10, 40)  # of a queue's file; from 26 on it has several sectors
USES = (("", 64), ("sync", 32), ("create", 8), ("delete", 3), ("delete", 3), ("write", 4))
"""During which use of the disk the power may fail: the first, second … of any kind, or of one kind."""
STEPS = 60  # of one life, at most
LIVES = 6  # of one store, at most


class CrashRun(StoreClient):
    """One case while it runs."""

    power = False  # whether it was lost since the store was last open

    def run(self) -> CrashTally:
        """All lives. Raises Mismatch, and whatever the implementation should not have raised."""
        file_size, entries = FILES[self.pick(FILES)], ENTRIES[self.pick(ENTRIES)]
        file_size = ENDLESS if "roll" in self.subject.absent else file_size
        self.layout = SubjectLayout(
            file_size=file_size,
            queue_entries=entries,
            synchronous=bool(self.choose(2)),
            overlap="overlap" not in self.subject.absent,
            batch_records=(64, 1, 5)[self.choose(3)],
            checksums=entries != ENTRIES[0],  # no choice of its own, so that cases that were kept stay what they are
        )
        self.disk = SimulatedDisk(page=(4096, 2048, 512)[self.choose(3)])
        self.faulty = self.choose(3) == 1
        self.alike = self.choose(3) > 1  # all messages are of one size: what was lost could come back in its place
        self.oracle = ClientOracle(self.subject, file_size)
        self.tell(
            "files of {} bytes, queues of {} entries a file, {}, pages of {} bytes",
            file_size, entries, "synchronous" if self.layout.synchronous else "asynchronous", self.disk.page,
        )  # fmt: skip
        for _ in range(1 + self.choose(LIVES)):
            self._live()
        self._end_in_peace()
        return self.tally

    def _live(self) -> None:
        """One life, and the disk that it leaves."""
        verb, uses = USES[self.pick(USES)]
        self.disk.lose_power_after(self.choose(uses), verb)
        self._favour()
        try:
            if self.faulty and self.choose(8) == 1:
                self.fail()
            is_open = self._open()
            steps = self._swarm()
            for _ in range(self.choose(STEPS) if is_open else 0):
                self._step(*steps[self.pick(steps)])
            end = ("power", "process", "close", "power")[self.choose(4)]
            if end == "close" and not (is_open and self._close()):
                end = "power"
        except PowerLost as lost:
            end = ("power", "process")[self.choose(4) == 1]
            self.tally.uses[f"{str(lost).split(', ')[1].split('/')[0]}"] += 1
            self.tell("the {} is lost at {}", end, lost)
        self._crash(end)

    def _crash(self, end: str) -> None:
        """Replace the disk by its remains after a loss of power or of the process, or after a clean stop."""
        self.tally.ends[end] += 1
        self.subject.die()
        self.tally.points += end != "close"
        if end == "power" or self.forgotten or (end == "close" and self.choose(2)):
            # A later process cannot know what the kernel forgot after a failed sync: the machine must restart before
            # anything is promised again.
            self.power = True
            self.disk = self.disk.crash(self.choose)
            self.tell("{}; of the disk is lost: {}", end, self.disk.lost or "nothing")
        else:
            self.disk = self.disk.kill(self.choose)
            self.tell("{}; what was written is there", end)
        self.armed = self.stopped = self.forgotten = False
        self.batches = []

    def _open(self) -> bool:
        """Open the store and compare what is found in it; False if the disk failed."""
        try:
            self.subject.open(self.disk, self.layout)
        except self.subject.errors.any as error:
            self._must_be_armed(error)
            self.tell("it does not open: {}", error)
            self.tally.refused["open"] += 1
            return False
        s = self.subject.as_log()
        self.tell("opened: log from {} to {}", s.start, s.end)
        self._compare_all()
        return True

    def _end_in_peace(self) -> None:
        """On a disk that does not fail, the store opens, closes, and opens again with all it had."""
        for _ in range(2):
            if not self._open():
                raise Mismatch("a store on a whole disk does not open")
            for _ in range(3):
                self.append()
            self.dispatch()
            if not self._close():
                raise Mismatch("a store on a whole disk does not close")
            self._crash("close")

    def _close(self) -> bool:
        try:
            self._finish_batches()
            self.subject.close(self.now)
        except self.subject.errors.any as error:
            self._must_be_armed(error)
            self.tell("it does not close: {}", error)
            return False
        self.oracle.flushed(self.subject.as_log().end)
        self.tell("closed")
        for name, s in self.oracle.queues.items():
            committed = self.subject.reach(name).committed if name in self.subject.queues() else s.end
            if committed < s.end:
                raise Mismatch(f"{path_of(name)} has entries up to {committed} after a clean stop, expected {s.end}")
        return True

    # -- what is found -----------------------------------------------------------------------------------------------

    def _compare_all(self) -> None:
        """Compare the store that was found with all its client knows."""
        subject, oracle, s = self.subject, self.oracle, self.subject.as_log()
        expected = oracle.lost(s.end, s.start, power=self.power)
        self.power = False
        oracle.acknowledged(s.acknowledged)
        self._compare_log()
        found = list(subject.records())
        self.tally.records += len(found)
        for sent, record in zip(expected, found, strict=False):
            oracle.read(sent, record)
        if len(found) != len(expected):
            raise Mismatch(f"{len(found)} records are found from {s.start} on, expected {len(expected)}")
        for name in subject.queues():
            reach = subject.reach(name)
            model = oracle.queues[name] = queue_spec.rebuild(oracle.queue(name))
            if (reach.first, reach.next) != (model.first, model.end):
                found_in, wanted = f"{reach.first} to {reach.next}", f"{model.first} to {model.end}"
                raise Mismatch(f"{path_of(name)} is found with numbers from {found_in}, expected {wanted}")
            self._see(name)
            queue_spec.settle(oracle.queues[name], Position(s.end))
        for name, model in oracle.queues.items():
            if model.first < model.end and name not in subject.queues():
                raise Mismatch(
                    f"no queue {path_of(name)} is found, and it had numbers from {model.first} to {model.end}"
                )
        oracle.checkpointed(subject.progress().checkpoint)

    # -- steps -------------------------------------------------------------------------------------------------------

    def _swarm(self) -> list[tuple[str, Callable[[], None]]]:
        """The steps of one life: some are left out, so that the others meet states that would else be rare.

        Source: Groce et al., "Swarm Testing", ISSTA 2012.
        """
        weights: tuple[tuple[int, Callable[[], None]], ...] = (
            (3, self.append_many), (3, self.flush), (2, self.acknowledge), (3, self.dispatch), (3, self.build),
            (2, self.commit), (3, self.flush_queues), (2, self.checkpoint), (2, self.make_ready), (2, self.write_back),
            (4, self.tick), (2, self.expire), (int(self.faulty), self.fail),
        )  # fmt: skip
        chosen = [(7, self.append), *(pair for pair in weights if self.choose(3) and self._has(pair[1].__name__))]
        return [(step.__name__, step) for weight, step in chosen for _ in range(weight)]

    def _has(self, verb: str) -> bool:
        why = self.subject.absent.get(verb)
        if why is not None:
            self.tally.absent[f"{verb}: {why}"] += 1
        return why is None

    def _step(self, name: str, step: Callable[[], None]) -> None:
        self.tally.steps[name] += 1
        try:
            step()
        except self.subject.errors.any as error:
            if isinstance(error, self.subject.errors.refused):
                raise
            self._must_be_armed(error)
            self.tally.refused[name] += 1
            self.tell("{} refuses: {}", name, error)
        self._compare_log()
