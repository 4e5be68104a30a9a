"""A state machine for any spec and its implementation: every step is offered; both take it, or both refuse.

The implementation is a class with a method for each step of the spec, called with its arguments by name:

    class LeaseService:
        refused = (LeaseError,)                       # what it raises where it refuses; then nothing has changed
        absent = {"expire": "time is not simulated"}  # steps that it has not, and why
        unknown = {"clock": "it has no clock"}     # fields of the state that it cannot tell, and why

        def grant(self, worker, token): ...
        def as_spec(self): return {"taken": self.holder is not None, "tokens": {1: 7}}

`as_spec` tells every field of the spec's state, a Map as a dict of what is not its default; after each step it is
compared with the model as a whole. A machine is made by calling the class without arguments, and `close`, if there is
one, is called in the end.
"""

from __future__ import annotations

import os
import re
import unittest
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from types import TracebackType
from typing import Any, ClassVar

from hypothesis import HealthCheck, Phase, event, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from gapless.properties.machines.contract import BrokenContract
from gapless.properties.machines.declaration import Declaration
from gapless.properties.machines.lockstep import STORY, Lockstep, StepMismatch, shortest
from gapless.properties.machines.stateful.dispatch_machine import DispatchMachine
from gapless.properties.machines.stateful.likely_arguments import likely, values_near
from gapless.properties.machines.stateful.log_machine import LogMachine
from gapless.properties.machines.stateful.queue_machine import QueueMachine
from gapless.properties.machines.stateful.subject_machine import SubjectMachine
from gapless.properties.subject import Subject
from gapless.spec.catalog import PROFILES, STRICT, Spec, State
from gapless.spec.language import Refused
from gapless.traces.specs import calling_file, load

SHARE = 0.1  # of the steps that are offered, at least, both sides must take
STORES: dict[str, type[SubjectMachine]] = {"log": LogMachine, "queue": QueueMachine, "dispatch": DispatchMachine}
"""The machines of whole stores, which crash them and interleave their workers, by spec."""


OFTEN = (-1, -1)
"""Numbers that are offered more often: what is written in Python takes a negative index for one from the end."""


class Unhealthy(AssertionError):  # noqa: N818 - it names a finding.
    """A run that passed, and shows little: hardly any step was taken, or one never."""

    __module__ = "gapless"


def _again(found: Exception, of: settings) -> str:
    """The lines that say how the case that fails is run again, here and elsewhere."""
    lines = []
    if of.derandomize or of.database is not None:
        lines.append("Again: run this test again; Hypothesis comes to the same.")
    for one in getattr(found, "__notes__", ()):
        if decorator := re.search(r"@(reproduce_failure\(.*\)) as a decorator", one):
            lines += ["On another machine: from hypothesis import reproduce_failure, and for one run make the test by"]
            lines += [f"{decorator[1]}(machine_for(…)).TestCase"]
    return "\n".join(["", *lines])


RUNS, LONGEST = 30, 100  # at most: of one test, and of steps in each; few long runs find more than many short ones


def _default_settings() -> settings:
    """The settings of a test that chooses none; a profile of Hypothesis that chooses the number of runs is kept."""
    usual = settings.get_profile("default")
    chosen = settings()
    if (chosen.max_examples, chosen.stateful_step_count) != (usual.max_examples, usual.stateful_step_count):
        return chosen
    return settings(max_examples=RUNS, stateful_step_count=LONGEST)


def _judged(chosen: settings) -> settings:
    """The settings that a user chose, without the phases that are replaced here and limits of time."""
    phases = [phase for phase in chosen.phases if phase not in (Phase.target, Phase.shrink, Phase.explain)]
    return settings(
        chosen,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=phases,
        report_multiple_bugs=False,
        print_blob=True,
    )


def _of_the_implementation(error: BaseException) -> TracebackType | None:
    """The frames of an error from the method of the implementation on."""
    frame = error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code is Lockstep.offer.__code__:
            return frame.tb_next
        frame = frame.tb_next
    return error.__traceback__


class _Case:
    """The `TestCase` of a machine: the test of Hypothesis, with a story.

    Where both differ, the story is made as short as leaving out steps makes it, in place of Hypothesis' own shrinking,
    which knows less of it. Where they do not, it is asked whether the run showed anything.
    """

    def __get__(self, machine: object, kind: type[SpecMachine]) -> type[unittest.TestCase]:
        base: Any = RuleBasedStateMachine.__dict__["TestCase"].__get__(None, kind)

        class TestCase(base):  # type: ignore[misc] # it is made while the program runs
            """One run."""

            settings = _judged(_default_settings())

            def runTest(self) -> None:  # noqa: N802 - as unittest has it
                """Run, and fail where both differ, or where the run shows nothing."""
                __tracebackhide__ = True  # so that pytest shows the story, and not how it was found
                kind.taken.clear()
                kind.offered.clear()
                self.settings = _judged(self.settings)
                try:
                    super().runTest()
                except BrokenContract as found:
                    raise found.with_traceback(None) from None
                except StepMismatch as found:
                    failure = shortest(kind.spec, kind.make, kind.profile, found)
                    failure.add_note(_again(found, self.settings))
                    raise failure.with_traceback(None) from None
                except Exception as error:
                    if story := getattr(error, STORY, None):  # Hypothesis' own notes are numbers that it drew
                        error.__notes__ = [story, _again(error, self.settings)]
                        raise error.with_traceback(_of_the_implementation(error)) from None
                    raise
                kind.require_health()

            # So that Hypothesis' plugin of pytest knows it, and shows its statistics; as in hypothesis.stateful.
            runTest.is_hypothesis_test = True  # type: ignore[attr-defined]
            runTest._hypothesis_state_machine_class = kind  # type: ignore[attr-defined] # noqa: SLF001

        TestCase.__name__ = TestCase.__qualname__ = kind.__name__
        return TestCase


class SpecMachine(RuleBasedStateMachine):
    """An implementation and its model. `machine_for` makes one for a spec and a class."""

    spec: ClassVar[Spec]
    make: ClassVar[Callable[[], Any]]
    profile: ClassVar[str]
    share: ClassVar[float]
    rare: ClassVar[frozenset[str]]
    steps: ClassVar[tuple[str, ...]]
    taken: ClassVar[Counter[str]]
    offered: ClassVar[Counter[str]]
    TestCase = _Case()  # type: ignore[assignment] # a property of the class, as that of Hypothesis

    def __init__(self) -> None:
        super().__init__()
        self.both = Lockstep(self.spec, type(self).make, self.profile)
        self.reached: set[str] = set()

    @rule(data=st.data())
    def step(self, data: st.DataObject) -> None:
        """Any step, with arguments that are likely to be taken, or with any."""
        model = self.both.model
        name = data.draw(st.sampled_from(self.steps))
        near, flags = [*values_near(self.spec, model), *OFTEN], self.spec.flags[name]
        args = tuple(data.draw(st.sampled_from((1, 0) if a in flags else near)) for a in self.spec.parameters[name])
        if data.draw(st.sampled_from((True, True, False))):
            args = likely(self.spec, model, name, args, self.profile)
        took = self.both.offer((name, args))
        if took is not None:
            event(f"{self.spec.name}.{name} {'taken' if took else 'refused'}")
            note("   ".join(self.both.story[-1]))
            self.offered[name] += 1
            self.taken[name] += took
            if took:
                self.reached.add(name)

    def teardown(self) -> None:
        """The implementation is closed. What Hypothesis observes of the case names the spec, and what it reached."""
        if hasattr(self, "both"):
            event("spec", self.spec.name)
            event("implementation", self.both.called)
            event("steps reached", f"{len(self.reached)} of {len(self.steps)}")
            self.both.close()

    @classmethod
    def perform(cls, steps: Iterable[tuple[str, Mapping[str, int]]]) -> None:
        """Perform steps on a new implementation and its model, in their order. Raises StepMismatch, with its story.

        A step that the implementation lacks is left out; where it would change the state, so are all behind it.
        """
        both = Lockstep(cls.spec, cls.make, cls.profile)
        try:
            for name, args in steps:
                if name in cls.steps:
                    both.offer((name, tuple(args[argument] for argument in cls.spec.parameters[name])))
                elif cls._changes(both.model, name, args):
                    return
        finally:
            both.close()

    @classmethod
    def _changes(cls, state: State, name: str, args: Mapping[str, int]) -> bool:
        """True if a step is taken, and leads to another state."""
        try:
            return bool(cls.spec.step(state, name, args, cls.profile)[0] != state)
        except Refused:
            return False

    @classmethod
    def require_health(cls) -> None:
        """Raises Unhealthy where the run took too few steps to show anything."""
        taken, offered = cls.taken.total(), cls.offered.total()
        if taken < cls.share * offered:
            raise Unhealthy(f"{taken} of {offered} steps were taken, fewer than {cls.share:.0%}: this run shows little")
        if never := [name for name in cls.steps if not cls.taken[name] and name not in cls.rare]:
            raise Unhealthy(
                f"of {offered} steps none was {' or '.join(never)}: run more examples, or name what is rare in `rare`"
            )


def machine_for(
    spec: str | os.PathLike[str] | Spec,
    subject: Callable[[], Any],
    *,
    profile: str = STRICT,
    share: float = SHARE,
    rare: Collection[str] = (),
) -> type[RuleBasedStateMachine]:
    """A Hypothesis state machine for an implementation and its spec: `machine_for(…).TestCase` is a test.

    `spec`: one of ours by its name, or a file of yours in the folder of the
    calling module, above it in its project, or in the working directory · `subject`: a class, or a function that makes
    an object; a class that derives from
    `gapless.properties.subject.Subject` is a whole store, which is crashed and interleaved too, with log, queue or
    dispatch · `share`: of all steps, how many must be taken at least · `rare`: steps that may happen never. A run that
    shows less raises Unhealthy. Raises ValueError where there is no such spec or profile, TypeError where the class
    lacks a step and does not say why.
    """
    if not isinstance(spec, Spec | str | os.PathLike):
        raise TypeError(f"the spec is {spec!r}: give its file first, as in `machine_for('jobs.py', Adapter)`")
    of = spec if isinstance(spec, Spec) else load(spec, calling_file())
    declared = Declaration(subject)
    if Subject in declared.kind.__mro__:
        if of.name not in STORES:
            raise ValueError(f"a store is compared with {', '.join(STORES)}, and {of.name} is none of these")
        return STORES[of.name].of(subject)
    if profile not in PROFILES:
        raise ValueError(f"no such profile: {profile!r}, expected one of {', '.join(PROFILES)}")
    if not 0 <= share <= 1:
        raise ValueError(f"share is {share}: expected a part of all steps, from 0 to 1")
    declared.require(of, rare)
    members = {
        "spec": of,
        "make": staticmethod(subject),
        "profile": profile,
        "share": share,
        "rare": frozenset(rare),
        "steps": declared.steps,
        "taken": Counter(),
        "offered": Counter(),
    }
    return type(f"{declared.called}Machine", (SpecMachine,), members)
