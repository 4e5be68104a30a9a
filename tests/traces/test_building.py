"""Events are made by name: the order of arguments is the spec's business."""

from typing import NamedTuple

import pytest

from gapless.spec.catalog import SPECS
from gapless.spec.reading.trees.ranges import LIMIT
from gapless.traces.judging import building
from gapless.traces.judging.building import STEPS, Events
from gapless.traces.judging.bulk_accept import accepted
from gapless.traces.options import Options
from gapless.traces.replay.exact import replay


class Some(NamedTuple):
    """Two actions of `queue`, and two of its arguments, in no order of the spec."""

    settle: int
    append: int


class TakeArguments(NamedTuple):
    """The arguments, as above."""

    tag: int
    number: int


def test_an_event_has_its_arguments_in_the_order_of_the_spec() -> None:
    event = STEPS["queue"].append(tag=5, size=4, position=3, count=2, number=1)
    assert event == ("append", tuple({"number": 1, "count": 2, "position": 3, "size": 4, "tag": 5}.values()))


@pytest.mark.parametrize("given", [{}, {"number": 1}, {"number": 1, "start": 2, "end": 3}])
def test_an_event_takes_the_arguments_of_its_step_and_no_others(given: dict[str, int]) -> None:
    with pytest.raises(TypeError, match="open takes number, start"):
        STEPS["queue"].open(**given)


def test_many_events_of_a_step_are_those_that_are_made_one_by_one() -> None:
    queue, numbers, starts = STEPS["queue"], [3, 1, 2], [9, 8, 7]
    one_by_one = [queue.open(number=number, start=start) for number, start in zip(numbers, starts, strict=True)]
    assert queue.each("open", start=starts, number=numbers) == one_by_one
    with pytest.raises(TypeError, match="open takes number, start"):
        queue.each("open", number=numbers)


def test_a_spec_makes_no_steps_of_others() -> None:
    with pytest.raises(AttributeError, match="park"):
        STEPS["queue"].park(number=1)


def test_events_in_columns_are_read_as_they_were_written() -> None:
    queue, events = STEPS["queue"], Events.room(SPECS["queue"], 2)
    written = [queue.index(number=1, position=2, size=3, tag=4), queue.settle(upto=9)]
    for number, event in enumerate(written):
        events.put(number, event)
    assert [events.at(number) for number in range(2)] == written
    assert events.column("tag").tolist() == [4, 0]


def test_columns_of_events_are_those_events() -> None:
    queue = STEPS["queue"]
    written = [queue.settle(upto=9), queue.index(number=1, position=2, size=3, tag=4), queue.rebuild()] * 2
    events = Events.of(SPECS["queue"], written)
    assert [events.at(number) for number in range(6)] == written
    assert len(Events.of(SPECS["queue"], []).action) == 0
    with pytest.raises(OverflowError):
        Events.of(SPECS["queue"], [queue.settle(upto=2**63)])


def test_traces_are_accepted_together_as_they_are_by_exact_replay() -> None:
    queue = STEPS["queue"]
    traces = [
        [queue.open(number=number, start=start), queue.find_file(base=0, length=length, full=20)]
        for number in (-1, 0, 7, 2**61)
        for start in (0, 5)
        for length in (0, 20)
    ]
    exact = [
        replay("queue", SPECS["queue"].initial, trace, profile="strict").departure is None and trace[0][1][0] < LIMIT
        for trace in traces
    ]
    assert accepted("queue", traces, Options(profile="strict")) == exact
    assert True in exact
    assert accepted("queue", [*traces, [queue.settle(upto=2**63)]], Options()) == [False] * (len(traces) + 1)
    assert accepted("queue", [[queue.settle(upto=0)]] * 2, Options(), indexed=[0, 3], end=[0, 3], blank=[0, 3]) == [
        True,
        False,
    ]
    assert accepted("queue", [], Options()) == []


def test_codes_and_rows_go_by_name() -> None:
    spec = SPECS["queue"]
    assert building.codes(spec, Some) == (spec.codes["settle"], spec.codes["append"])
    assert building.rows(spec, TakeArguments) == (spec.arguments.index("tag"), spec.arguments.index("number"))
