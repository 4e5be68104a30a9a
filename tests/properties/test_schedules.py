"""Schedules are values: printed, replayed, drawn by priorities, and all of them tried where the world is small."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.properties.simulation.choices import Choices, every_choice
from gapless.properties.simulation.schedules import (
    Actor,
    Chooser,
    DoesNotFit,
    Schedule,
    ScheduleCounts,
    by,
    chosen,
    every,
    run,
    uniform,
    with_priorities,
)

SEEDS = st.integers(0, 2**32)
NAMES = st.text("ab.1é-", min_size=1, max_size=4)


@dataclass
class Toy:
    """A small world: actors, the numbers they share, and who stepped."""

    numbers: dict[str, int]
    actors: list[Actor] = field(default_factory=list)
    trail: list[str] = field(default_factory=list)

    def add(self, name: str, enabled: Callable[[], bool], step: Callable[[], object]) -> None:
        """One more actor."""

        def noted() -> None:
            self.trail.append(name)
            step()

        self.actors.append(Actor(name, enabled, noted))

    def change(self, name: str, number: int) -> None:
        """One of the numbers is another."""
        self.numbers[name] = number

    @property
    def key(self) -> tuple[int, ...]:
        """All that the future depends on."""
        return tuple(self.numbers.values())


def counters(*names: str, upto: int = 3) -> Toy:
    """Make actors that count, each for itself, without waiting."""
    toy = Toy(dict.fromkeys(names, 0))

    def add(name: str) -> None:
        toy.add(name, lambda: toy.numbers[name] < upto, lambda: toy.change(name, toy.numbers[name] + 1))

    for name in names:
        add(name)
    return toy


def lost_update(waiting: int = 0) -> Toy:
    """The planted bug, of depth two: each of two reads the total, does other things, and writes back one more."""
    toy = Toy({"total": 0})

    def add(name: str) -> None:
        at = 0
        read = 0

        def step() -> None:
            nonlocal at, read
            read = read if at else toy.numbers["total"]
            at += 1
            if at == waiting + 2:
                toy.change("total", read + 1)

        toy.add(name, lambda: at < waiting + 2, step)

    add("left")
    add("right")
    return toy


def check_total(toy: Toy) -> None:
    assert toy.numbers["total"] == 2, "an update was lost"


def detour() -> Toy:
    """From place 0 to place 2 by way of 1, or at once; then on to 3, where it ends."""
    toy = Toy({"place": 0})

    def add(name: str, before: set[int], by: int) -> None:
        toy.add(name, lambda: toy.numbers["place"] in before, lambda: toy.change("place", toy.numbers["place"] + by))

    add("slowly", {0, 1}, 1)
    add("at-once", {0}, 2)
    add("on", {2}, 1)
    return toy


# --- Values -------------------------------------------------------------------------------------------------


@given(st.lists(NAMES, max_size=10))
def test_a_schedule_is_its_text(names: list[str]) -> None:
    schedule = Schedule(tuple(names))
    assert Schedule.parse(str(schedule)) == schedule
    assert len(schedule) == len(names)


def test_a_schedule_prints_who_steps_again_once() -> None:
    text = "scan*3 take.1 take.2 wrote.2*2 commit"
    assert str(Schedule.parse(text)) == text
    assert Schedule.parse(text).steps[:4] == ("scan", "scan", "scan", "take.1")


@pytest.mark.parametrize("text", ["scan*", "scan*x", "*3", "scan*0", "scan*2*3", "scan*-1"])
def test_what_is_no_schedule_is_stated(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"with spaces between, not {text!r}")):
        Schedule.parse(f"take.1 {text}")


@pytest.mark.parametrize(
    ("names", "complaint"),
    [(("a", "a"), "two actors have one name: a a"), (("a b",), "'a b'"), (("a*2",), r"'a\*2'"), (("",), "''")],
)
def test_a_name_that_could_not_be_read_back_is_refused(names: tuple[str, ...], complaint: str) -> None:
    toy = Toy({})
    for name in names:
        toy.add(name, lambda: True, lambda: None)
    with pytest.raises(ValueError, match=complaint):
        run(toy, uniform(0))


# --- Runs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["uniform", "with priorities", "by choices"])
@given(seed=SEEDS)
def test_every_run_is_replayed_by_its_text(kind: str, seed: int) -> None:
    choosers: dict[str, Chooser] = {
        "uniform": uniform(seed),
        "with priorities": with_priorities(seed, changes=2, steps=9),
        "by choices": by(Choices(random.Random(seed).randrange)),
    }
    first, second = counters("a", "b", "c"), counters("a", "b", "c")
    schedule = run(first, choosers[kind])
    assert list(schedule.steps) == first.trail
    assert first.key == (3, 3, 3), "a run ends if no task can step"
    assert run(second, chosen(str(schedule))) == schedule
    assert second.trail == first.trail


def test_a_run_ends_at_its_bound_and_so_does_its_replay() -> None:
    schedule = run(counters("a", "b"), uniform(1), bound=4)
    assert len(schedule) == 4
    assert run(counters("a", "b"), chosen(schedule)) == schedule
    assert run(counters("a", "b"), uniform(1), bound=0) == Schedule(())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a*4", "step 4 of 4 is a, but only these can step: b"),
        ("a z b", "step 2 of 3 is z, but only these can step: a b"),
    ],
)
def test_a_schedule_of_another_world_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(DoesNotFit, match=complaint):
        run(counters("a", "b"), chosen(text))


def test_what_a_step_raises_tells_the_schedule() -> None:
    toy = counters("a")
    toy.add("b", lambda: True, lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError) as broken:
        run(toy, by(Choices.of([0, 0, 1])))
    assert broken.value.__notes__ == ["schedule: a*2 b"]


def test_uniform_choices_reach_every_schedule() -> None:
    seen = {run(counters("a", "b", upto=2), uniform(seed)) for seed in range(200)}
    assert len(seen) == 6


# --- Priorities ---------------------------------------------------------------------------------------------


def test_without_changes_the_running_task_continues_to_the_end() -> None:
    seen = {str(run(counters("a", "b", "c"), with_priorities(seed, changes=0, steps=9))) for seed in range(100)}
    assert seen == {"a*3 b*3 c*3", "a*3 c*3 b*3", "b*3 a*3 c*3", "b*3 c*3 a*3", "c*3 a*3 b*3", "c*3 b*3 a*3"}


def test_a_change_puts_the_next_task_behind_all_others() -> None:
    """The interrupted task comes last."""
    for seed in range(100):
        steps = run(counters("a", "b", "c"), with_priorities(seed, changes=1, steps=6)).steps
        interrupted = [name for at, name in enumerate(steps[:6]) if name in steps[at + 1 :] and steps[at + 1] != name]
        assert all(name == steps[-1] for name in interrupted), steps
    orders = {run(counters("a", "b", upto=1), with_priorities(seed, changes=1, steps=1)).steps for seed in range(9)}
    assert orders == {("a", "b"), ("b", "a")}


def test_how_far_each_change_moves_a_task_back_is_drawn_too() -> None:
    """The second of two changes after the first step undoes the first in half of all runs.

    Otherwise it has no effect.
    """
    runs = [run(counters("a", "b", upto=4), with_priorities(seed, changes=2, steps=4)) for seed in range(1000)]
    undone = sum(len(str(schedule).split()) == 4 for schedule in runs)  # one, the other, the one, the other
    assert 200 < undone < 300, "half of those, itself a half, where no change comes before the first step"


def test_priorities_find_a_bug_of_depth_two_as_often_as_the_paper_says() -> None:
    """At least once in actors × steps runs; here far more often, since any step between read and write will do."""
    waiting, runs = 40, 1000
    steps = 2 * (waiting + 2)

    def found(changes: int) -> int:
        lost = 0
        for seed in range(runs):
            toy = lost_update(waiting)
            run(toy, with_priorities(seed, changes=changes, steps=steps))
            lost += toy.numbers["total"] != 2
        return lost

    assert found(changes=1) >= runs / (2 * steps)
    assert found(changes=0) == 0, "a bug of depth two is none of depth one"


# --- All of them --------------------------------------------------------------------------------------------


def test_two_actors_of_three_steps_have_twenty_schedules() -> None:
    seen: list[str] = []
    counts = every(lambda: counters("a", "b"), finished=lambda toy: seen.append(" ".join(toy.trail)))
    assert counts == ScheduleCounts(schedules=20, steps=120)
    assert len(set(seen)) == 20
    assert all(name.count("a") == name.count("b") == 3 for name in seen)


def test_states_that_were_seen_are_not_explored_again() -> None:
    """A grid of 4 × 4 states has 24 steps in it, each taken once, but for those that lead back to a fork."""
    counts = every(lambda: counters("a", "b"), state=lambda toy: toy.key)
    assert counts == ScheduleCounts(schedules=1, joined=9, steps=42, states=16)


def test_a_bound_cuts_and_hides_no_state_within_it() -> None:
    assert every(lambda: counters("a", "b"), bound=3) == ScheduleCounts(cut=8, steps=24)
    with_key = every(lambda: counters("a", "b"), bound=3, state=lambda toy: toy.key)
    assert with_key.states == 10


def test_a_state_that_is_met_again_after_fewer_steps_is_explored_again() -> None:
    """The longer way is met first, and the bound cuts it before the end; by the shorter one the end is within it."""
    ends: list[str] = []
    counts = every(detour, bound=2, state=lambda toy: toy.key, finished=lambda toy: ends.append(" ".join(toy.trail)))
    assert ends == ["at-once on"]
    assert counts == ScheduleCounts(schedules=1, cut=1, steps=4, states=4)
    assert every(detour, state=lambda toy: toy.key) == ScheduleCounts(schedules=1, joined=1, steps=4, states=4)


def test_a_bug_is_found_with_its_schedule_and_the_schedule_finds_it_again() -> None:
    with pytest.raises(AssertionError, match="an update was lost") as lost:
        every(lost_update, finished=check_total)
    (note,) = lost.value.__notes__
    toy = lost_update()
    run(toy, chosen(note.removeprefix("schedule: ")))
    with pytest.raises(AssertionError, match="an update was lost"):
        check_total(toy)


def test_a_world_that_begins_otherwise_each_time_is_refused() -> None:
    for other in (counters("a", "b", "c"), counters("a"), counters()):
        worlds = iter([counters("a", "b"), other])
        with pytest.raises(ValueError, match="the world does not begin again each time"):
            every(lambda: next(worlds))  # noqa: B023 - called at once.


def test_choices_of_disks_and_of_steps_are_tried_alike() -> None:
    """Every schedule is every answer to the same kind of question."""
    by_choices = [str(run(counters("a", "b", upto=2), by(choose))) for choose in every_choice()]
    assert len(set(by_choices)) == len(by_choices) == 6
