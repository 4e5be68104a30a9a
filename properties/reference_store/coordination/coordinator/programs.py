"""Long programs for a coordinator and its model, each the same for the same seed: many lives and deaths.

Hypothesis begins with short programs, and shrinks what it finds; these go on until files were begun and outcomes
forgotten. The power is lost at any use of the disk: in a flush, while another file is begun, while it is opened.
"""

from __future__ import annotations

from gapless.impl.coordinator.recorder import StepTape
from gapless.impl.coordinator.values import CoordinatorSettings
from gapless.properties.campaign import answers
from gapless.properties.reference_store.coordination.coordinator.refinement import CoordinatorRefinement
from gapless.properties.reference_store.recorded_conformance import require_conformance
from gapless.properties.simulation.choices import Choose

STEPS = 150
RECORDED = 5  # every fifth program is recorded, and the recording must conform
LIMITS = (1, 2, 3, 4, 0, -1)
ENDS = ("close", "kill", "lose", "kill in a flush", "lose in a flush", "lose in a use", "lose in a use")
WORK = ("live", "live", "ask", "ask again", "hand", "add", "add", "decide", "time out", "race", "finish", "acknowledge")
STEP = (*WORK, *WORK, "flush", "flush", "flush", "flush", "full", "wait", "end")


class CoordinatorProgram:
    """One program."""

    def __init__(self, choose: Choose, *, recorded: bool = False) -> None:
        self.choose = choose
        self.tape = StepTape() if recorded else None
        limit, keep = LIMITS[choose(4)], (1, 2, 100)[choose(3)]
        settings = CoordinatorSettings(limit, keep, (128, 300, 1 << 12)[choose(3)])
        self.pair = CoordinatorRefinement(settings, self.tape.coordinator() if self.tape else None)
        self.asked = 0

    def run(self) -> None:
        """Run it, and let all come to rest. Raises Mismatch, Nonconformance, and what nothing should have raised."""
        for _ in range(STEPS):
            self._step(STEP[self.choose(len(STEP))])
        self.pair.rest()
        if self.tape is not None:
            require_conformance(self.tape)

    def _number(self) -> int:
        """A transaction: mostly one that takes a slot, or has just ended."""
        table = list(self.pair.core.table)
        if table and self.choose(4):
            return table[self.choose(len(table))]
        return self.pair.core.end - self.choose(5)

    def _step(self, what: str) -> None:  # noqa: C901, PLR0912 - a case each
        pair, choose = self.pair, self.choose
        match what:
            case "ask" | "live":
                self.asked += 1
                pair.ask(self.asked, (1, 100, 5000)[choose(3)])
                if what == "live":
                    self._live()
            case "ask again":
                pair.ask(max(0, self.asked - choose(4)), 100)
            case "hand":
                pair.hand(self._number())
            case "add":
                pair.add(self._number())
            case "decide":
                pair.decide(self._number(), commit=choose(2) == 0)
            case "time out":
                pair.time_out(self._number())
            case "race":
                number = self._number()
                pair.now += 5000
                pair.decide(number, commit=choose(2) == 0)
                pair.time_out(number)
            case "finish":
                pair.finish(self._number())
            case "acknowledge":
                pair.acknowledge(self._number())
            case "flush" | "full":
                pair.flush(full=what == "full")
            case "wait":
                pair.now += (1, 50, 100, 5000)[choose(4)]
            case _:
                pair.crash(ENDS[choose(len(ENDS))], LIMITS[choose(len(LIMITS))], choose)

    def _live(self) -> None:
        """The client of the request continues, up to some point."""
        pair, choose = self.pair, self.choose
        number = max(pair.core.table, default=pair.core.end)
        pair.flush()
        for what in range(choose(6)):
            match what:
                case 0:
                    pair.hand(number)
                case 1 if choose(2):
                    pair.add(number)
                case 2:
                    pair.decide(number, commit=choose(2) == 0)
                case 3 if choose(4):
                    pair.flush()
                case 4:
                    pair.finish(number)
                    pair.flush(full=not choose(4))
                case _:
                    pass


def run_program(seed: int) -> None:
    """Run the program of a seed."""
    CoordinatorProgram(answers(f"seed {seed}"), recorded=seed % RECORDED == RECORDED - 1).run()
