"""The ledger: every obligation, what became of it, how long it took, by which Z3 and of which definitions.

Each spec is proved in a process of its own, which is ended at the wall limit, so that a budget is kept whatever Z3
does. What is proved is remembered under a digest of everything that it was proved of: the spec's text, the language,
the readers, Z3. A changed definition has another digest, and its old proofs are worth nothing.
"""

from __future__ import annotations

import gc
import hashlib
import json
import multiprocessing
import os
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import platformdirs
import z3
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from gapless.properties.proof import (
    claims,
    counterexamples,
    cut_equivalence,
    induction,
    liveness,
    named_refinements,
    objections,
    refinement,
    symbolic,
    translation,
    unrolling,
    word_size,
)
from gapless.properties.proof.counterexamples import Result
from gapless.properties.proof.induction import Obligation
from gapless.properties.proof.terms import boolean_terms, counts, unknowns
from gapless.spec import catalog, forking, language
from gapless.spec.catalog import SPECS, AnySpec, Spec, resolve_spec, text_of
from gapless.spec.reading.checking import checked
from gapless.spec.reading.trees import decision_trees as trees
from gapless.spec.reading.trees import difference_bounds, map_effects, ranges
from gapless.spec.reading.trees import terms as spec_terms
from gapless.traces.processes.parent_watch import begin_work, signals_blocked
from gapless.traces.processes.worker_processes import WorkerContext
from gapless.traces.replay import kernels, loop, step_functions, syntax

Outcome = Literal["proved", "refuted", "unknown", "budget"]
READERS = (
    language,
    forking,
    boolean_terms,
    counts,
    unknowns,
    symbolic,
    induction,
    counterexamples,
    unrolling,
    liveness,
    objections,
    claims,
    refinement,
    named_refinements,
    cut_equivalence,
    translation,
    word_size,
    spec_terms,
    map_effects,
    trees,
    difference_bounds,
    ranges,
    syntax,
    step_functions,
    loop,
    kernels,
    catalog,
)


UNREACHED = (
    f"no run of up to {unrolling.DEPTH} steps in small numbers leads from the beginning to it: "
    "it takes a longer one, or an invariant is missing that excludes such a state"
)


class LedgerEntry(BaseModel):
    """One obligation, and what became of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    spec: str
    invariant: str = Field(description="the invariant, step property or claim, or `can_happen`")
    step: str = Field(description="the step that keeps it, or INITIAL")
    under: Literal["design", "deviations"] = Field(description="whether the steps of real brokers are taken too")
    result: Outcome = Field(description="budget: not reached before the wall limit")
    ms: float
    work: int = Field(description="in Z3's own measure (rlimit)")
    assumes: tuple[str, ...] = Field(
        default=(), description="of the environment, and of who takes which step in the end"
    )
    why: str = ""
    story: list[str] = []
    reached: bool = Field(default=True, description="of what is refuted: not only in a state that may be unreachable")


class Ledger(BaseModel):
    """All obligations, in the order of the specs."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: int = Field(default=1, alias="schema")
    z3: str
    digests: dict[str, str] = Field(description="of the definitions, by spec")
    assumed: dict[str, tuple[str, ...]] = Field(
        default={}, description="of the environment, by spec: proofs build on it"
    )
    in_the_end: dict[str, dict[str, tuple[str, ...]]] = Field(
        default={}, description="by spec and claim, what happens in the end builds on: who acts, and what stops"
    )
    refines: dict[str, tuple[str, ...]] = Field(
        default={}, description="by spec, those that it refines, as its obligations say"
    )
    without_rank: dict[str, tuple[str, ...]] = Field(
        default={}, description="by spec, the claims that are not proved: explore decides them on finite graphs"
    )
    obligations: list[LedgerEntry]
    seconds: float

    @property
    def exit_code(self) -> int:
        """0 proved · 1 false in a run from the beginning · 3 unknown, out of budget, or perhaps unreachable."""
        if any(entry.result == "refuted" and entry.reached for entry in self.obligations):
            return 1
        return 3 if {entry.result for entry in self.obligations} != {"proved"} else 0


def subjects() -> tuple[str, ...]:
    """The subjects of proofs: the specs by name, and the laws of joining."""
    return (*SPECS, cut_equivalence.LAWS)


Subject = AnySpec
"""A spec, or the laws of joining by their name."""


def name_of(subject: Subject) -> str:
    """The name of a subject in the ledger."""
    return subject if isinstance(subject, str) else subject.name


def every(subject: Subject) -> Iterator[Obligation]:
    """All obligations of a spec, or the laws of joining. Raises ForeignWords."""
    if subject == cut_equivalence.LAWS:
        yield from cut_equivalence.laws()
        return
    spec = checked(resolve_spec(subject))
    yield from induction.obligations(spec)
    yield from liveness.obligations(spec)
    yield from refinement.obligations(spec)
    yield from cut_equivalence.obligations(spec)
    yield from translation.obligations(spec)
    yield from word_size.obligations(spec)


# -- what was proved before ----------------------------------------------------------------------------------------


@cache
def digest(subject: Subject) -> str:
    """The digest of a subject's definitions: a change of any makes its proofs stale."""
    parts = [z3.get_full_version(), *(text_of(module) for module in READERS)]
    parts += [text_of(module) for module in ([] if subject == cut_equivalence.LAWS else _about(resolve_spec(subject)))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _about(spec: Spec) -> Iterator[ModuleType]:
    """The modules that say what is shown of a spec: its own, those of its claims and of the specs that it refines."""
    yield from spec.files
    yield from claims.modules()
    for one in refinement.of(spec):
        yield from one.files


def _remembered(subject: Subject) -> Path:
    return Path(platformdirs.user_cache_dir("gapless")) / "proofs" / f"{name_of(subject)}-{digest(subject)}.json"


def recall(subject: Subject) -> dict[str, LedgerEntry]:
    """The proofs of these very definitions so far."""
    try:
        entries = REMEMBERED.validate_json(_remembered(subject).read_bytes())
    except (OSError, ValueError):
        return {}
    return {
        which: entry
        for which, entry in entries.items()
        if (entry.result, entry.spec) == ("proved", name_of(subject))
        and which == _which(entry.under, entry.step, entry.invariant)
    }


def remember(subject: Subject, entries: dict[str, LedgerEntry]) -> None:
    """Keep what is proved, where that is possible."""
    path = _remembered(subject)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({key: entry.model_dump() for key, entry in entries.items() if entry.result == "proved"})
        unfinished = path.with_suffix(f".{multiprocessing.current_process().pid}.tmp")
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)


def key(obligation: Obligation) -> str:
    """The key of an obligation within its spec."""
    return _which(_under(obligation), obligation.step, obligation.invariant)


def _which(under: str, step: str, invariant: str) -> str:
    return f"{under}: {step}: {invariant.replace(' ', '_')}"


REMEMBERED = TypeAdapter(dict[str, LedgerEntry])


# -- proving -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProofOptions:
    """The budget of a proof, and the use of earlier proofs."""

    work: int = induction.WORK
    seed: int = 0
    budget: float | None = None  # s, for all together
    fresh: bool = False
    jobs: int = 2


Progress = Callable[[LedgerEntry], None]


def prove(
    chosen: Sequence[Subject] = (), asked: ProofOptions = ProofOptions(), on_progress: Progress = lambda _entry: None
) -> Ledger:
    """Prove all obligations of some subjects, by default of all of ours; `on_progress` hears of each as it is settled.

    Raises ForeignWords where a spec says what not every reader understands.
    """
    began = time.monotonic()
    of: dict[str, Subject] = {name_of(subject): subject for subject in tuple(chosen) or subjects()}
    found: dict[str, dict[str, LedgerEntry]] = {}
    waiting: list[Subject] = []
    for name, subject in of.items():
        known = {} if asked.fresh else recall(subject)
        wanted = [key(obligation) for obligation in every(subject)]
        if twice := [one for one, count in Counter(wanted).items() if count > 1]:
            raise ValueError(f"{name}: there are two obligations called {twice[0]!r}: give each a name of its own")
        found[name] = {one: known[one] for one in wanted if one in known}
        for entry in found[name].values():
            on_progress(entry)
        if len(found[name]) < len(wanted):
            waiting.append(subject)
    deadline = None if asked.budget is None else began + asked.budget
    try:
        in_time = _in_processes(waiting, asked, deadline, found, on_progress)
    finally:
        for subject in waiting:
            remember(subject, recall(subject) | found[name_of(subject)])
    return Ledger(
        z3=z3.get_version_string(),
        digests={name: digest(subject) for name, subject in of.items()},
        assumed={name: granted for name, subject in of.items() if (granted := _assumptions(subject))},
        in_the_end={name: claimed for name, subject in of.items() if (claimed := _claimed(subject))},
        refines={name: names for name, subject in of.items() if (names := _refined(subject))},
        without_rank={name: unproved for name, subject in of.items() if (unproved := _without_rank(subject))},
        obligations=[
            found[name].get(key(obligation)) or _missing(obligation, in_time=in_time)
            for name, subject in of.items()
            for obligation in every(subject)
        ],
        seconds=time.monotonic() - began,
    )


def _assumptions(subject: Subject) -> tuple[str, ...]:
    return () if subject == cut_equivalence.LAWS else resolve_spec(subject).assumptions


def _claimed(subject: Subject) -> dict[str, tuple[str, ...]]:
    """The assumptions of the claims about a subject."""
    if subject == cut_equivalence.LAWS:
        return {}
    return {claim.sentence: claim.assumes for claim in claims.claims_of(resolve_spec(subject))}


def _refined(subject: Subject) -> tuple[str, ...]:
    if subject == cut_equivalence.LAWS:
        return ()
    return tuple(one.abstract.name for one in refinement.of(resolve_spec(subject)))


def _without_rank(subject: Subject) -> tuple[str, ...]:
    return () if subject == cut_equivalence.LAWS else claims.without_rank(resolve_spec(subject))


def _in_processes(
    subjects: Sequence[Subject],
    asked: ProofOptions,
    deadline: float | None,
    found: dict[str, dict[str, LedgerEntry]],
    on_progress: Progress,
) -> bool:
    """A process for each subject, `jobs` at a time, the largest first; whether all ended before the deadline."""
    waiting = sorted(subjects, key=lambda subject: sum(1 for _ in every(subject)))
    running: dict[Connection, tuple[str, Any]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < asked.jobs:
                subject = waiting.pop()
                name = name_of(subject)
                here, there = multiprocessing.Pipe(duplex=False)
                worker = _context().Process(
                    target=_worker, args=(subject, tuple(found[name]), asked, there, os.getpid()), daemon=True
                )
                with signals_blocked(spawns=True):
                    worker.start()
                there.close()
                running[here] = name, worker
            left = None if deadline is None else deadline - time.monotonic()
            ready = wait(list(running), left) if left is None or left > 0 else []
            if not ready:
                return False
            for one in ready:
                _take(one, running, found, on_progress)  # type: ignore[arg-type] # a pipe's end, as all of ours
        return True
    finally:
        for _, worker in running.values():
            worker.kill()


def _context() -> Any:
    """A fresh process: Z3 does not survive being forked."""
    return WorkerContext()


def _take(
    one: Connection,
    running: dict[Connection, tuple[str, Any]],
    found: dict[str, dict[str, LedgerEntry]],
    on_progress: Progress,
) -> None:
    name, worker = running[one]
    try:
        which, entry = one.recv()
    except EOFError:
        worker.join()
        del running[one]
        one.close()
        return
    found[name][which] = entry
    on_progress(entry)


def _worker(subject: Subject, known: tuple[str, ...], asked: ProofOptions, out: Connection, parent: int) -> None:
    """Settle what is not known yet, one by one.

    Nothing is collected meanwhile: Z3 orders terms by their numbers, and gives those of lost terms to others. Where the
    collector chose when they are lost, the same proof would take other work on another day.
    """
    begin_work(parent)
    gc.disable()
    refuted: list[tuple[Obligation, Result]] = []
    with suppress(BrokenPipeError):
        for obligation in every(subject):
            if key(obligation) not in known:
                entry, result = _asked(obligation, asked)
                out.send((key(obligation), entry))
                refuted += [(obligation, result)] if result and needs_a_run(obligation, result) else []
        for obligation, result in refuted:  # each of them is reported by now, and a run may take a minute to find
            out.send((key(obligation), with_a_run(obligation, result)))
    out.close()


def _asked(obligation: Obligation, asked: ProofOptions) -> tuple[LedgerEntry, Result | None]:
    """The entry of an obligation before a run is looked for; what cannot even be asked is unknown."""
    try:
        result = counterexamples.settled(obligation, work=asked.work, seed=asked.seed)
        return _answered(obligation, result), result
    except Exception as error:  # noqa: BLE001 - whatever is wrong with a spec, the obligation that met it reports it
        return _entry(obligation, "unknown", 0.0, 0, f"{UNREADABLE}{_cause(obligation, error)}", []), None


UNREADABLE = "it cannot be read: "
"""The beginning of the reason of an obligation that could not be asked."""


def _cause(obligation: Obligation, error: Exception) -> str:
    """The error, with the file and line of the spec that raised it."""
    files = {module.__file__ for module in obligation.spec.files}
    lines = [
        f"{frame.filename}:{frame.lineno}: "
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename in files
    ]
    what = f"{type(error).__name__}: {error}"
    if isinstance(error, language.Refused):
        what = f"a step is refused here ({error}): write `not accepts(…) or …` before what takes it"
    return f"{lines[-1] if lines else ''}{what}"


def _answered(obligation: Obligation, result: Result) -> LedgerEntry:
    story = counterexamples.story(result) if result.example is not None and result.verdict == "refuted" else []
    why = SEARCHED if needs_a_run(obligation, result) else result.why
    entry = _entry(obligation, result.verdict, round(result.ms, 1), result.work, why, story)
    return entry.model_copy(update={"reached": why != SEARCHED})


SEARCHED = "a run from the beginning to it is being looked for"


def needs_a_run(obligation: Obligation, result: Result) -> bool:
    """True if an example was found in a state that may not be reachable."""
    found = result.verdict == "refuted" and result.example is not None
    return found and not obligation.begins


def with_a_run(obligation: Obligation, result: Result) -> LedgerEntry:
    """The entry of what is refuted, with a run from the beginning if one is found."""
    try:
        run = unrolling.run_to(obligation)
    except Exception:  # noqa: BLE001 - the refutation stands without it
        run = None
    why = result.why if run else UNREACHED
    entry = _entry(obligation, "refuted", round(result.ms, 1), result.work, why, counterexamples.story(result, run))
    return entry.model_copy(update={"reached": run is not None})


def settle(obligation: Obligation, *, work: int = induction.WORK, seed: int = 0) -> LedgerEntry:
    """Prove one obligation here and now, and find a run to what refutes it."""
    result = counterexamples.settled(obligation, work=work, seed=seed)
    return with_a_run(obligation, result) if needs_a_run(obligation, result) else _answered(obligation, result)


def _missing(obligation: Obligation, *, in_time: bool) -> LedgerEntry:
    if in_time:
        return _entry(obligation, "unknown", 0.0, 0, "the process that should have proved it ended before", [])
    return _entry(obligation, "budget", 0.0, 0, "the wall limit was reached before", [])


def _entry(o: Obligation, result: Outcome, ms: float, work: int, why: str, story: list[str]) -> LedgerEntry:
    return LedgerEntry(
        spec=o.about, invariant=o.invariant.replace(" ", "_"), step=o.step, under=_under(o), result=result,
        ms=ms, work=work, assumes=o.granted, why=why, story=story,
    )  # fmt: skip


def _under(obligation: Obligation) -> Literal["design", "deviations"]:
    return "deviations" if obligation.weak else "design"
