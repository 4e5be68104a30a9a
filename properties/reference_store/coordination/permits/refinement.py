"""A client's permits and their model: both take each step, or both refuse it, and then their states are compared."""

from __future__ import annotations

from collections.abc import Callable

from gapless.impl.coordinator.observer import PermitObserver
from gapless.impl.coordinator.permits import Permits
from gapless.impl.records.errors import Refused
from gapless.properties.machines.mismatch import expect
from gapless.properties.machines.spec_refinement import SpecRefinement, ones, over
from gapless.spec import permits as spec
from gapless.spec.language import Number, accepts, replace
from gapless.spec.permits import State


class PermitsRefinement(SpecRefinement[State]):
    """The permits of one client, and the model."""

    refused = (Refused,)

    def __init__(self, permits: int, timeout: int, observer: PermitObserver | None = None) -> None:
        super().__init__(spec.open(spec.INITIAL, permits, timeout))
        self.now = 0
        self.permits = Permits(permits, timeout, observer)
        self.asked = 0
        self.compare()

    def tick(self, by: int) -> None:
        """Time goes by."""
        self.now += by
        self._step(spec.tick, self.now)

    def ask(self) -> int:
        """A new request takes a permit, if one is free and nobody waits; otherwise its caller waits."""
        free = self.model.in_use < self.model.permits and self.model.waiting == 0
        number, has_permit = self.permits.ask(self.now)
        expect(number == self.asked, f"request {self.asked} is called {number}")
        expect(has_permit == free, f"a permit is free: {free}; and taken at once: {has_permit}")
        self.asked += 1
        self._step(spec.acquire if has_permit else spec.wait, number)
        return number

    def reply(self, number: int) -> None:
        """An answer comes: to one that is out, or was given up, or never went out."""
        heard, late = accepts(spec.reply, self.model, number), accepts(spec.late_reply, self.model, number)
        woken = self.both(lambda: self.permits.reply(number, self.now), taken=heard or late)
        expect((woken is not None) == heard, f"request {number} is out: {heard}; and its answer is heard: {not heard}")
        if heard or late:
            self.tally["an answer came late"] += late
            self._step(spec.reply if heard else spec.late_reply, number, woken=woken)

    def time_out(self, number: int) -> None:
        """No answer came in time."""
        can = accepts(spec.time_out, self.model, number)
        expect((number in self.permits.due(self.now)) == can, f"request {number} can be given up: {can}")
        woken = self.both(lambda: self.permits.time_out(number, self.now), taken=can)
        if can:
            self._step(spec.time_out, number, woken=woken)

    def disconnect(self) -> None:
        """The connection is lost."""
        self.permits.disconnect()
        self._step(spec.disconnect)

    def rest(self) -> None:
        """All has come to rest."""
        self.permits.rest()
        self._step(spec.rest, 0)

    def drain(self) -> None:
        """No answers come any more: every permit comes back."""
        while self.permits.in_use:
            self.tick(self.permits.timeout)
            for number in self.permits.due(self.now):
                self.time_out(number)
        self.rest()
        self.require(spec.AT_REST)

    def _step(self, action: Callable[..., State], *arguments: int, woken: list[int] | None = None) -> None:
        """The model takes the step, and then wakes whom the implementation has woken: all who can be, in order."""
        self.take(action, *arguments)
        s = self.model
        waited = [n for n in range(self.asked) if s.waits[Number(n)]]
        expect((woken or []) == waited[: s.permits - s.in_use], f"of {waited}, {woken} are woken")
        for number in woken or []:
            self.tally["a caller was woken"] += 1
            self.take(spec.acquire, number)
        self.compare()

    def as_spec(self) -> State:
        """The meaning of the permits' state. History (answers, stretches of time) is the model's."""
        found, model = self.permits, self.model
        taken = [n for n in range(self.asked) if n not in found.waiting]
        return replace(
            model,
            permits=found.count,
            timeout=found.timeout,
            in_use=len(found.in_use),
            waiting=len(found.waiting),
            cuts=found.cuts,
            taken=ones(taken),
            returned=ones(n for n in taken if n not in found.in_use),
            since=over(model.since, found.in_use),
            waits=ones(found.waiting),
        )
