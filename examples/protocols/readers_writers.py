"""Readers and writers: many read at once, one writes alone, and requests are served in their order.

As TLA+'s ReadersWriters has it. The queue has room for six requests: for two of each of three actors.
"""

from dataclasses import dataclass
from typing import NewType

from gapless.spec.language import Bound, Map, all_between, applies, implies, replace, require

Actor = NewType("Actor", int)
Place = NewType("Place", int)
ACTORS = 3
PLACES = 6
NONE = Actor(-1)


@dataclass(frozen=True, slots=True)
class State:
    """The readers, the writer, and the queue of requests, from place 0 on."""

    actors: int = ACTORS  # which no step changes
    reading: Map[Actor, bool] = Map(False)
    writer: Actor = Actor(-1)  # -1 for none
    queue: Map[Place, int] = Map(0)
    end: Place = Place(0)


def to_read(actor: Actor) -> int:
    """The request of an actor to read, as the queue has it."""
    return 2 * actor + 1


def to_write(actor: Actor) -> int:
    """The request to write."""
    return 2 * actor + 2


def is_new(s: State, request: int) -> bool:
    """True if a request is not in the queue."""
    return all_between(0, s.end, lambda p: s.queue[Place(p)] != request)


def ask(s: State, actor: Actor, writes: bool) -> State:
    """An actor asks to read, or to write."""
    applies(0 <= actor < s.actors and s.end < PLACES)
    require(
        is_new(s, to_write(actor) if writes else to_read(actor)),
        "actor-asks-once",
        because="the request is not in the queue yet",
        otherwise="one actor keeps the others waiting",
    )
    request = to_write(actor) if writes else to_read(actor)
    return replace(s, queue=s.queue.set(s.end, request), end=Place(s.end + 1))


def moved(s: State) -> Map[Place, int]:
    """The queue without its first request."""
    return (
        s.queue.set(Place(0), s.queue[Place(1)])
        .set(Place(1), s.queue[Place(2)])
        .set(Place(2), s.queue[Place(3)])
        .set(Place(3), s.queue[Place(4)])
        .set(Place(4), s.queue[Place(5)])
        .set(Place(5), 0)
    )


def read(s: State, actor: Actor) -> State:
    """The first request is to read: its actor reads."""
    applies(0 <= actor < s.actors and 0 < s.end and s.queue[Place(0)] == to_read(actor))
    require(
        s.writer == NONE,
        "no-actor-writes",
        because="no actor writes",
        otherwise="a reader sees half of what is written",
    )
    return replace(s, reading=s.reading.set(actor, True), queue=moved(s), end=Place(s.end - 1))


def write(s: State, actor: Actor) -> State:
    """The first request is to write: its actor writes."""
    applies(0 <= actor < s.actors and 0 < s.end and s.queue[Place(0)] == to_write(actor))
    require(s.writer == NONE, "no-other-actor-writes", because="no other actor writes", otherwise="two write at once")
    require(
        all_between(0, s.actors, lambda a: not s.reading[Actor(a)]),
        "no-actor-reads",
        because="no actor reads",
        otherwise="a reader sees half of what is written",
    )
    return replace(s, writer=actor, queue=moved(s), end=Place(s.end - 1))


def stop_reading(s: State, actor: Actor) -> State:
    """A reader stops."""
    applies(s.reading[actor])
    return replace(s, reading=s.reading.set(actor, False))


def stop_writing(s: State) -> State:
    """The writer stops."""
    applies(s.writer != NONE)
    return replace(s, writer=NONE)


def none_reads_while_one_writes(s: State, actor: Actor) -> bool:
    """Otherwise it sees half of what is written."""
    return implies(s.writer != NONE, not s.reading[actor])


def only_actors_read(s: State, actor: Actor) -> bool:
    """Otherwise a stranger keeps writers waiting."""
    return implies(s.reading[actor], 0 <= actor < s.actors)


def the_queue_has_room(s: State) -> bool:
    """Otherwise a request is lost."""
    return 0 <= s.end <= PLACES


INITIAL = State()
ACTIONS = (ask, read, write, stop_reading, stop_writing)
INVARIANTS = (none_reads_while_one_writes, only_actors_read, the_queue_has_room)
BOUND = Bound(says="all states", within=lambda s: True, numbers={"actor": range(ACTORS), "writes": (False, True)})
