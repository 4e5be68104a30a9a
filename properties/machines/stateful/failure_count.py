"""The first failure of a Hypothesis machine, for a program instead of a test."""

from __future__ import annotations

from functools import partial

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from gapless.properties.campaign import described, error_of


def first_failure(machine: type[RuleBasedStateMachine], cases: int) -> tuple[int, str] | None:
    """The number of programs until one fails, and its failure.

    They are the same ones as long as the same modules are loaded: Hypothesis also tries the constants that these name.
    """
    begun = 0

    class Counter(machine):  # type: ignore[misc,valid-type]
        def __init__(self) -> None:
            super().__init__()
            nonlocal begun
            begun += 1

    without_shrinking = settings(
        max_examples=cases,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    error = error_of(partial(run_state_machine_as_test, Counter, settings=without_shrinking))
    return None if error is None else (begun, described(error))
