"""Cases of the black-box machine: one store, and several processes that have it open, one after the other.

Each process is killed, or ends in some other way; the next one must be able to open the store, and what it finds is
checked by the `ClientLedger`. Answers are checked by it at once. In the end the store is closed.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from gapless.properties.machines.blackbox.client_ledger import ClientLedger
from gapless.properties.machines.blackbox.conversation import Conversation
from gapless.properties.machines.blackbox.half_ledger import Decision, HalfLedger
from gapless.properties.machines.blackbox.limits import KINDS, Kind, SmallDisk
from gapless.properties.machines.blackbox.subject_process import Answer, SubjectMaker
from gapless.properties.machines.blackbox.tally import OFFERED, BlackBoxTally, FailedCase
from gapless.properties.machines.blackbox.watcher import Watcher
from gapless.properties.machines.blackbox.workload import Disturbance, LifePlan, LifePlanner, PlannedCall
from gapless.properties.machines.mismatch import Mismatch, expect
from gapless.traces.check import check

LIVES = 8
CHECKED = 0.5  # of the stores that were killed are judged as they lie there, and as many when they were opened again
ON_SMALL_DISKS = 0.15  # of the stores
WITH_TRANSACTIONS = 0.7  # of the stores, where the subject offers them
WATCHED = 0.3  # of the lives, where the subject offers that
ANSWERED = 0.5  # of the halves that are left when a process ends: the next one knows what to answer about them
YOUNG = 5.0  # seconds within which a child that was just forked comes to close its copy of the lock
A_BATCH = 0.012  # seconds within which a large batch is asked for, read and written
BUSY = 8  # calls that are sent before a disturbance comes, so that it finds a client at work

FILES = (8, 20, 44)  # descriptors
SIZES = (0, 4096, 10_000)  # bytes of the largest file that may be written
DISKS = (300_000, 600_000, 1_500_000)  # bytes


class StoreCase:
    """One store and its lives. `lines`: what was done, in short · `checked`: whether the strict check judges it."""

    def __init__(self, seed: int, subjects: SubjectMaker, folder: Path, tally: BlackBoxTally, *, checked: bool) -> None:
        self.chance = random.Random(f"black box {seed}")  # noqa: S311 - a seed is no secret
        self.subjects, self.folder, self.tally, self.checked = subjects, folder, tally, checked
        self.planner = LifePlanner(self.chance)
        self.ledger = ClientLedger()
        self.halves = HalfLedger(self.ledger, 0, asks_by_itself=False)
        self.lines: list[str] = []
        self.disk: SmallDisk | None = None
        self.talk: Conversation | None = None
        self.watcher: Watcher | None = None
        self._children: list[int] = []  # forked from subjects, and alive: descriptors of processes
        self._was_forking = False  # when the last process died

    def run(self, disk: Kind | None) -> None:
        """All lives, and a clean stop. Raises Mismatch."""
        how = "synchronous" if self.planner.synchronous else "flushed now and then"
        self._tell(f"a store with files of {self.planner.file_size:,} bytes, {how}")
        offers = self.subjects.offers
        for verb, kinds in OFFERED.items():
            self.tally.skipped |= {f"{kind}: the subject does not offer this" for kind in kinds if verb not in offers}
        self.planner.has_followers = "follow" in offers
        if "transactions" in offers and self.chance.random() < WITH_TRANSACTIONS:
            self._begin_transactions()
        if disk is not None:
            size = self.chance.choice(DISKS)
            self.disk = SmallDisk(self.folder, size, disk)
            self.folder = self.disk.folder
            self._tell(f"on a disk with {size:,} free bytes, {disk}")
            self.tally.counts["small disks"] += 1
        try:
            for number in range(LIVES):
                self._life(number, self.planner.life())
            if self.disk is not None:
                self.disk.widen()
            if self.planner.transactions:
                self._tell("every producer answers")
                self._rest(answered=1.0)
            self._tell("and again: open, read all, close")
            self._rest(answered=0.0)
            self._check()
        finally:
            self._end_children()
            self._release_processes()

    def _release_processes(self) -> None:
        """They are gone, as far as there are any."""
        if self.watcher is not None:
            self.watcher.release()
        if self.talk is not None:
            self.talk.process.release()

    def _begin_transactions(self) -> None:
        """There are transactions in this store."""
        self.planner.begin_transactions()
        chosen = self.planner.transactions
        self.halves = HalfLedger(self.ledger, chosen["max_checks"], asks_by_itself="ask_every" in chosen)
        self._tell(f"with transactions: {chosen}")
        self.tally.counts["stores with transactions"] += 1

    def _rest(self, answered: float) -> None:
        """A life without disturbance; where all halves are answered, a round of checks decides each of them."""
        talk = self._begin(answered)
        self._open_and_find(talk)
        if answered:
            talk.decide_all()
        self._close(talk)
        talk.end()

    def release(self) -> None:
        """A small disk is gone."""
        if self.disk is not None:
            self.disk.release()

    def _tell(self, line: str) -> None:
        self.lines.append(line)

    # -- a life ------------------------------------------------------------------------------------------------------

    def _life(self, number: int, plan: LifePlan) -> None:
        pauses = iter(plan.pauses)
        self._tell(f"life {number}: {plan.opening}")
        talk = self._begin()
        if plan.opening == "kill in open":
            talk.ask_to_open(self.folder)
            time.sleep(next(pauses))
            self.tally.counts["kills while it opened"] += 1
            self._kill(talk)
            return
        if plan.opening == "interrupt in open":
            talk = self._interrupt_opening(talk, next(pauses))
        if plan.opening == "open with few files":
            talk = self._limit_opening(talk)
        self._open_and_find(talk)
        if plan.opening == "open and check":
            self._tell("killed, checked, and opened again")
            self._kill(talk)
            self._check()
            talk = self._begin()
            self._open_and_find(talk)
        self._watch()
        self._work(talk, plan, pauses)
        self._end(talk, plan, next(pauses))
        self._end_watching()
        self._children += talk.children
        if self.chance.random() < CHECKED:
            self._check(is_raw=True)

    def _watch(self) -> None:
        """Another process follows the store from now on, in some lives."""
        is_used = any(queue.places for queue in self.ledger.queues.values())
        if "view" in self.subjects.offers and is_used and self.chance.random() < WATCHED:
            self._tell("another process follows it")
            self.watcher = Watcher(self.subjects.start(), self.ledger)
            self.watcher.begin(self.folder, self.chance)

    def _end_watching(self) -> None:
        """The other process has followed it to its end."""
        if (watcher := self.watcher) is not None:
            self.tally.counts["watched messages"] += watcher.end(may_lack=self.ledger.expirable >= 0)
            watcher.release()
            self.watcher = None

    def _begin(self, answered: float = ANSWERED) -> Conversation:
        """Nothing is open in the new process yet. It knows what to answer about so many of the halves that are left."""
        limited, counts = self.disk is not None, self.tally.counts
        self.talk = Conversation(
            self.subjects.start(), self.ledger, self.planner, counts, limited=limited, halves=self.halves
        )
        self.talk.answers = self._answers(answered)
        return self.talk

    def _answers(self, share: float) -> dict[str, Decision]:
        """Answers of producers about the halves that may be undecided; all know it in the end."""
        answers: dict[str, Decision] = {}
        for half in self.halves.halves:
            intent: Decision | None = half.intent or ("roll_back" if share == 1 else None)
            is_left = not half.is_committed and half.rolled_back != "durably" and half.fate != "absent"
            if is_left and intent is not None and self.chance.random() < share:
                answers[half.message.sent.name] = intent
        return answers

    def _interrupt_opening(self, talk: Conversation, pause: float) -> Conversation:
        """Press Ctrl-C, in time or too late. Returns a process that has not opened the store."""
        talk.ask_to_open(self.folder)
        time.sleep(pause)
        talk.process.interrupt()
        self.tally.counts["interrupts"] += 1
        answer = talk.process.next_answer(needs="open")
        talk.count_interrupted(answer)
        return self._not_open(talk, answer)

    def _limit_opening(self, talk: Conversation) -> Conversation:
        """It may open with few descriptors, or not; then it must with many."""
        talk.process.limit(resource.RLIMIT_NOFILE, self.chance.choice(FILES))
        self.tally.counts["limits"] += 1
        answer = self._asked_to_open(talk)
        talk.process.limit(resource.RLIMIT_NOFILE, None)
        return self._not_open(talk, answer)

    def _not_open(self, talk: Conversation, answer: Answer) -> Conversation:
        if "ok" not in answer:
            return talk
        self._kill(talk)
        return self._begin()

    def _open_and_find(self, talk: Conversation) -> None:
        """The store opens, and holds what it must."""
        answer = self._asked_to_open(talk)
        if answer.get("error") == "full" and self.disk is not None:
            self.disk.widen()
            self._tell("the disk is full: made wider")
            answer = self._asked_to_open(talk)
        end = time.monotonic() + YOUNG
        while self._was_forking and answer.get("error") == "in use" and time.monotonic() < end:
            time.sleep(0.01)
            answer = self._asked_to_open(talk)
        self._was_forking = False
        expect("ok" in answer, f"the store does not open: {answer}")
        self.tally.counts["openings"] += 1
        self._end_children()  # they have outlived their parents, and locked no process out
        talk.find_all()

    def _asked_to_open(self, talk: Conversation) -> Answer:
        talk.ask_to_open(self.folder)
        return talk.process.next_answer(needs="open")

    def _work(self, talk: Conversation, plan: LifePlan, pauses: Iterator[float]) -> None:
        """The clients ask, disturbances come; it returns when all is answered, or when the end has come."""
        clients = {call.client for call in plan.calls}
        self._tell(f"{len(plan.calls)} calls of {len(clients)} clients, {plan.window} at a time")
        to_send, disturbances, answered = deque(plan.calls), deque(plan.disturbances), 0
        while True:
            while to_send and talk.pending < plan.window:
                talk.send(to_send.popleft())
            while disturbances and disturbances[0][0] <= answered:
                kind = disturbances.popleft()[1]
                self._tell(f"{kind} after {answered} answers")
                busy = self.planner.before_an_interrupt() if kind == "interrupt" else []
                for call in [*busy, *(to_send.popleft() for _ in range(min(len(to_send), BUSY)))]:
                    talk.send(call)
                pause = next(pauses)
                self._disturb(talk, kind, self.chance.random() * A_BATCH if busy else pause)
            if not talk.pending or (plan.ending == "kill" and answered >= plan.end_after and not disturbances):
                self._tell(f"{plan.ending} after {answered} answers")
                return
            talk.answered(talk.process.next_answer(needs=talk.needed))
            answered += 1

    # -- disturbances ------------------------------------------------------------------------------------------------

    def _disturb(self, talk: Conversation, kind: Disturbance, pause: float) -> None:
        time.sleep(pause)
        match kind:
            case "interrupt":
                talk.interrupted = True
                talk.process.interrupt()
                self.tally.counts["interrupts"] += 1
            case "fork":
                client, queue = self.chance.choice(sorted(talk.calls)), self.chance.choice(sorted(self.ledger.queues))
                talk.send(PlannedCall(client, "fork", queue))
                self.tally.counts["forks"] += 1
            case "files" | "size":
                limit = resource.RLIMIT_NOFILE if kind == "files" else resource.RLIMIT_FSIZE
                talk.limited = True
                talk.process.limit(limit, self.chance.choice(FILES if kind == "files" else SIZES))
                self.tally.counts["limits"] += 1
            case "lift":
                talk.process.limit(resource.RLIMIT_NOFILE, None)
                talk.process.limit(resource.RLIMIT_FSIZE, None)
            case "intruder":
                self._intrude()

    def _intrude(self) -> None:
        """Another process must not open the store meanwhile."""
        intruder = self.subjects.start()
        try:
            answer = intruder.ask("open", folder=str(self.folder), settings=self.planner.settings)
            expect(answer.get("error") == "in use", f"a second process may open the store: {answer}")
        finally:
            intruder.release()
        self.tally.counts["intruders"] += 1

    # -- the end -----------------------------------------------------------------------------------------------------

    def _end(self, talk: Conversation, plan: LifePlan, pause: float) -> None:
        """The process comes to its end."""
        time.sleep(pause)
        match plan.ending:
            case "kill" | "kill when idle":
                self._kill(talk)
            case "close":
                self._close(talk)
            case "kill in close":
                talk.process.send(0, "close")
                time.sleep(pause)
                self.tally.counts["kills while it closed"] += 1
                self._kill(talk)
            case "interrupt in close":
                talk.process.send(0, "close")
                time.sleep(pause)
                talk.process.interrupt()
                self.tally.counts["interrupts"] += 1
                answer = talk.process.next_answer(needs="close")
                talk.count_interrupted(answer)
                if answer.get("error") == "interrupted":
                    self._close(talk)
        talk.end()

    def _close(self, talk: Conversation) -> None:
        answer = talk.process.ask("close")
        expect("ok" in answer or talk.limited, f"the store does not close: {answer}")
        if "ok" in answer:
            self.ledger.flushed(self.ledger.clock)
            self.halves.flushed(self.ledger.clock)
            self.halves.stopped()
            self.tally.counts["closes"] += 1

    def _kill(self, talk: Conversation) -> None:
        """SIGKILL; what it answered before that counts."""
        talk.process.kill()
        self.tally.counts["kills"] += 1
        for answer in talk.process.answers():
            if talk.pending:  # else it was asked to open or to close
                talk.answered(answer)
        talk.end()
        self._was_forking |= talk.was_forking

    def _end_children(self) -> None:
        """Forked children outlive their parents until the store has been opened again."""
        if self.talk is not None:
            self._children += self.talk.children
            self.talk.children = []
        while self._children:
            child = self._children.pop()
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(child, signal.SIGKILL)
            os.close(child)

    def _check(self, *, is_raw: bool = False) -> None:
        """Check that the files in the folder conform, strictly.

        It may be inconclusive if nothing was ever appended, or if it was not opened since the process was killed:
        queues may be built in any order (docs/proposals.md#parallel-dispatch), and the next opening builds the rest.
        """
        if not self.checked:
            return
        report = check([self.folder], profile="strict", engine="local", jobs=1)
        is_used = any(queue.places for queue in self.ledger.queues.values())
        fine = {"conforms"} if is_used and not is_raw else {"conforms", "inconclusive"}
        reasons = [*report.sources[0].reasons, *(finding.message for finding in report.findings[:3])]
        expect(report.verdict in fine, f"the strict check says of the store: {report.verdict}: {'; '.join(reasons)}")
        self.tally.counts["checks"] += 1


# -- many ------------------------------------------------------------------------------------------------------------


def run_cases(seeds: Sequence[int], command: str, *, checked: bool, until: int | None = None) -> BlackBoxTally:
    """The cases of these seeds, up to the first that fails, or to so many kills and interrupts."""
    tally = BlackBoxTally()
    with tempfile.TemporaryDirectory(prefix="gapless-", ignore_cleanup_errors=True) as pipes:
        subjects = SubjectMaker(command, Path(pipes))
        try:
            for seed in seeds:
                _run_case(seed, subjects, tally, checked=checked)
                if tally.failures or (until is not None and tally.disturbed >= until):
                    break
        finally:
            subjects.release()
    return tally


def _run_case(seed: int, subjects: SubjectMaker, tally: BlackBoxTally, *, checked: bool) -> None:
    folder = Path(tempfile.mkdtemp(prefix=f"gapless-black-box-{seed}-", dir=_memory()))
    case = StoreCase(seed, subjects, folder, tally, checked=checked)
    disk = case.chance.choice(KINDS) if case.chance.random() < ON_SMALL_DISKS else None
    if disk is not None and not SmallDisk.can_be(folder, disk):
        tally.skipped.add(f"small disks: this machine does not let us mount {disk}")
        disk = None
    try:
        case.run(disk)
    except Mismatch as wrong:
        kept = Path(tempfile.mkdtemp(prefix=f"gapless-black-box-{seed}-kept-"))
        shutil.copytree(case.folder, kept / "store")
        with suppress(FileNotFoundError):
            shutil.copy(subjects.errors, kept / "stderr")
        tally.failures.append(FailedCase(seed, case.lines, str(wrong), kept))
    finally:
        case.release()
        shutil.rmtree(folder, ignore_errors=True)
    tally.counts["stores"] += 1


def _memory() -> Path | None:
    """The place of folders in memory, if this machine has one: no power fails here, and no test waits for a disk."""
    memory = Path("/dev/shm")  # noqa: S108 - the folders in it have names that cannot be guessed
    return memory if memory.is_dir() else None
