"""The machine of the example of leases, and its service with a method changed."""

from __future__ import annotations

import unittest
from collections.abc import Callable
from typing import Any

from hypothesis import settings

from examples.lease_service import LeaseService
from gapless import machine_for
from tests.support.command_line import ROOT

LEASE = str(ROOT / "examples/lease.py")


def few(case: Any, examples: int = 30) -> Any:
    """The same test, as short as a test of a test should be."""
    case.settings = settings(case.settings, max_examples=examples, derandomize=True, database=None)
    return case


def run(subject: Callable[[], Any], spec: str = LEASE, **options: Any) -> None:
    """One run of the machine, as unittest has it. Raises what it finds."""
    case: type[unittest.TestCase] = machine_for(spec, subject, **options).TestCase
    few(case)("runTest").debug()


def changed(**methods: Any) -> type[LeaseService]:
    """The service with other methods."""
    return type("Faulty", (LeaseService,), methods)
