"""The contract of `machine_for`: what a class lacks or misspells is refused in one sentence."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from examples.lease_service import LeaseService, Refused
from gapless import machine_for
from tests.support.lease_service import LEASE, changed, run


class RemoteService(LeaseService):
    """A class that needs an address."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address


def test_a_function_that_makes_an_object_is_taken_with_the_name_of_its_class() -> None:
    for make in (lambda: RemoteService("here"), partial(RemoteService, "here")):
        assert machine_for(LEASE, make).__name__ == "RemoteServiceMachine"
    run(partial(RemoteService, "here"))
    assert machine_for(Path(LEASE), LeaseService).__name__ == "LeaseServiceMachine"


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (RemoteService, "give `machine_for` a function that makes one, such as `lambda: RemoteService(…)`"),
        (RemoteService("here"), "has an object of RemoteService: give the class, not an object"),
        (lambda address: RemoteService(address + address), "give `machine_for` a function that needs none"),
        (None, "the class of an implementation is None: give the class itself"),
        (lambda: None, "NoneType has no grant, expire, write, as_spec, refused"),
    ],
)
def test_what_makes_no_objects_is_refused(make: Any, complaint: str) -> None:
    with pytest.raises(TypeError, match=re.escape(complaint)):
        machine_for(LEASE, make)


def test_the_arguments_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(TypeError, match="give its file first"):
        machine_for(LeaseService, LEASE)  # type: ignore[arg-type] # a mistake


async def late(_self: LeaseService) -> None:
    raise Refused


def lazy(_self: LeaseService) -> Any:
    yield Refused


@pytest.mark.parametrize(
    ("methods", "complaint"),
    [
        ({"expire": late}, "Faulty.expire is `async def`: give a method that runs it, as by asyncio.run(…)"),
        ({"as_spec": late}, "Faulty.as_spec is `async def`"),
        ({"expire": lazy}, "Faulty.expire has a `yield`, so that a call runs nothing of it"),
        ({"expire": None}, "Faulty.expire is a NoneType: expected a method"),
        ({"refused": Exception}, "Faulty.refused names Exception, which a bug raises too (as KeyError or TypeError)"),
        ({"refused": (Refused, Exception)}, "Faulty.refused names Exception"),
        ({"absent": ["expire"]}, "Faulty.absent is ['expire']: expected a dict of each step and the reason, such as"),
        ({"absent": {"expire": ""}}, "expected a dict of each step and the reason"),
        ({"absent": {"expires": "no time"}}, "lease has no step expires (did you mean expire?), named in Faulty.abs"),
        ({"unknown": {"sen": "no"}}, "State of lease has no field sen (did you mean seen?), named in Faulty.unknown"),
        ({"unknown": {"seen"}}, "Faulty.unknown is {'seen'}: expected a dict of each field and the reason, such as"),
    ],
)
def test_what_a_class_says_wrongly_is_refused_before_the_run(methods: dict[str, Any], complaint: str) -> None:
    with pytest.raises(TypeError, match=re.escape(complaint)):
        machine_for(LEASE, changed(**methods))


def test_the_nearest_name_is_suggested() -> None:
    class Half:
        """A state under another name, and no refusals."""

        grant, expire, write = LeaseService.grant, LeaseService.expire, LeaseService.write
        to_spec = LeaseService.as_spec

    with pytest.raises(TypeError, match=r"^Half has no as_spec, refused: rename to_spec to as_spec, if it is meant$"):
        machine_for(LEASE, Half)
    del Half.to_spec
    with pytest.raises(TypeError, match=r"^Half has no as_spec, refused: define them$"):
        machine_for(LEASE, Half)
    with pytest.raises(TypeError, match=re.escape("rare is 'expire': write rare=[\"expire\"]")):
        machine_for(LEASE, LeaseService, rare="expire")
    with pytest.raises(TypeError, match=r"lease has no step expires \(did you mean expire\?\)"):
        machine_for(LEASE, LeaseService, rare=["expires"])
    with pytest.raises(ValueError, match="share is 10: expected a part of all steps, from 0 to 1"):
        machine_for(LEASE, LeaseService, share=10)


FIELDS = {"taken": 0, "last": 0, "tokens": {}, "seen": 0}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"as_spec": {**FIELDS, "seen": None}}, "for none, such as -1, or name the field in `unknown`, and why"),
        ({"as_spec": {**FIELDS, "seen": 0.0}}, "seen is 0.0: expected a whole number"),
        ({"as_spec": {**FIELDS, "seen": float("inf")}}, "seen is inf: expected a whole number"),
        ({"as_spec": FIELDS, "unknown": {"seen": "lost"}}, "seen is in `unknown`, too: leave it out there, or here"),
    ],
)
def test_a_state_that_cannot_be_compared_is_refused(changes: dict[str, Any], complaint: str) -> None:
    state = changes.pop("as_spec")
    with pytest.raises(TypeError, match=re.escape(complaint)):
        run(changed(as_spec=lambda _self: state, **changes))


def without_words(self: LeaseService, worker: int, token: int) -> None:
    if token == 1:
        raise Refused
    LeaseService.grant(self, worker, token)


def quiet(self: LeaseService, worker: int, token: int) -> Any:
    try:
        LeaseService.grant(self, worker, token)
    except Refused:
        return False


async def inner() -> None: ...


@pytest.mark.parametrize(
    ("grant", "first", "line"),
    [
        (without_words, "grant is refused, and the spec takes it: ", "the spec takes it, and Faulty refuses: Refused"),
        (quiet, "grant breaks the rule ", "grant returned False: a refusal is one of the exceptions in `refused`"),
    ],
)
def test_a_departure_is_summed_up_in_its_first_line(grant: Callable[..., Any], first: str, line: str) -> None:
    with pytest.raises(Exception, match=re.escape(line)) as found:
        run(changed(grant=grant))
    assert str(found.value).startswith(first)
    assert f"{type(found.value).__module__}.{type(found.value).__name__}" == "gapless.StepMismatch"


def test_a_method_that_returns_what_must_be_awaited_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Faulty\.expire must be awaited"):
        run(changed(expire=lambda _self: inner()))
