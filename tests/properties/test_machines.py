"""The implementation next to its specs, driven by Hypothesis; each machine has exactly its spec's verbs."""

import inspect
from types import ModuleType

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from gapless.impl.recorder.recorder import StoreRecorder
from gapless.properties.faults.planted.fault_injection import replacing
from gapless.properties.machines.stateful import log_machine, queue_machine
from gapless.properties.machines.stateful.log_machine import LogMachine
from gapless.properties.machines.stateful.queue_machine import QueueMachine
from gapless.properties.machines.stateful.subject_machine import SubjectMachine
from gapless.properties.reference_store.recorded_conformance import Nonconformance
from gapless.properties.reference_store.store_subject import ReferenceStore
from gapless.spec import log, queue

TestLog = LogMachine.of(ReferenceStore).TestCase
TestQueue = QueueMachine.of(ReferenceStore).TestCase


@pytest.mark.parametrize(
    ("machine", "spec", "without"),
    [(LogMachine, log, log_machine.NO_COUNTERPART.keys()), (QueueMachine, queue, queue_machine.NO_COUNTERPART.keys())],
)
def test_a_machine_has_the_verbs_of_its_spec(
    machine: type[RuleBasedStateMachine], spec: ModuleType, without: set[str]
) -> None:
    rules = {name for name, found in inspect.getmembers(machine) if hasattr(found, "hypothesis_stateful_rule")}
    assert rules == {action.__name__ for action in spec.ACTIONS} - without


@pytest.mark.parametrize(
    ("machine", "untold", "needs"),
    [
        (LogMachine, "row_of_roll", 'flush breaks the rule "the bytes are written'),
        (
            LogMachine,
            "flushed",
            '(acknowledge breaks the rule "the bytes are|end breaks the rule "every record is) on disk',
        ),
        (QueueMachine, "wrote", 'commit breaks the rule "every entry before the commit position is written'),
        (QueueMachine, "committed", 'settle breaks the rule "'),
    ],
)
def test_what_a_run_records_is_replayed(machine: type[SubjectMachine], untold: str, needs: str) -> None:
    """A recording that leaves a step out is none of a lawful run."""
    quickly = settings(max_examples=50, phases=[Phase.generate], derandomize=True)
    with replacing(StoreRecorder, untold, lambda *_step: b""), pytest.raises(Nonconformance, match=needs):
        run_state_machine_as_test(machine.of(ReferenceStore), settings=quickly)
