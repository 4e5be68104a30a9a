"""Specs of a few lines: one with faults on purpose, one with quantifiers and arguments that are called like fields."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from gapless.spec.catalog import Spec

TOY = '''"""A counter."""

from dataclasses import dataclass

from gapless.spec.language import replace, require


@dataclass(frozen=True, slots=True)
class State:
    count: int = 0
    idle: int = 0


def add(s: State, more: int, honest: bool) -> State:
    require(0 < more, "there-is-more", because="there is more", otherwise="the count goes down")
    require(0 <= more, "there-is-not-less", because="there is not less", otherwise="the count goes down")
    require(more < 100, "there-is-not-too-much", because="there is not too much", otherwise="it is unknown")
    require(honest, "it-is-so", because="it is so", otherwise="a reader is misled")
    return replace(s, count=s.count + more, idle=more)


def the_count_begins_at_0(s: State) -> bool:
    """Otherwise it is not a count."""
    return 0 <= s.count


def the_count_goes_up(before: State, after: State) -> bool:
    """Otherwise it is not a count."""
    return before.count < after.count


INITIAL = State()
ACTIONS = (add,)
DEVIATIONS = ()
INVARIANTS = (the_count_begins_at_0,)
STEP_PROPERTIES = (the_count_goes_up,)
'''


FENCE = '''"""Work that is done in epochs, and counted up to the first gap."""

from dataclasses import dataclass
from enum import IntEnum

from gapless.spec.language import Map, Number, all_between, implies, replace, require


class Kind(IntEnum):
    NONE = 0
    SMALL = 1
    LARGE = 2


@dataclass(frozen=True, slots=True)
class State:
    epoch: int = 0
    done: Number = Number(0)
    bits: Map[Number, int] = Map(0)
    kind: Map[Number, Kind] = Map(Kind.NONE)


def begin(s: State, epoch: int) -> State:
    require(epoch == s.epoch + 1, "epochs-follow-one-another",
        because="epochs follow one another", otherwise="two workers believe that the work is theirs")
    return replace(s, epoch=epoch)


def work(s: State, number: Number, epoch: int, kind: Kind) -> State:
    require(epoch == s.epoch, "worker-is-of-this-epoch",
        because="the worker is of this epoch", otherwise="a worker that was fenced off continues")
    require(implies(s.kind[number] != Kind.NONE, kind == s.kind[number]), "kind-stays",
        because="the kind stays", otherwise="it is not the same work any more")
    return replace(s, bits=s.bits.set(number, 1), kind=s.kind.set(number, kind))


def finish(s: State, to: Number, kind: Kind) -> State:
    require(all_between(s.done, to, lambda n: s.bits[Number(n)] == 1), "no-work-before-it-is-missing",
        because="no work before it is missing", otherwise="it is never done")
    require(all_between(s.done, to, lambda n: s.kind[Number(n)] <= kind), "work-is-not-larger",
        because="the work is not larger", otherwise="it does not fit")
    return replace(s, done=to)


def promise(s: State, to: Number) -> State:
    require(all_between(0, to, lambda n: n < s.done), "what-is-promised-is-done",
        because="what is promised is done", otherwise="a client waits for ever")
    return s


def the_end_of_what_is_done_is_a_number(s: State) -> bool:
    """Otherwise it cannot be requested."""
    return 0 <= s.epoch


def epochs_never_go_back(before: State, after: State) -> bool:
    """Otherwise a worker that was fenced off is back."""
    return before.epoch <= after.epoch


INITIAL = State()
ACTIONS = (begin, work, finish, promise)
DEVIATIONS = ()
INVARIANTS = (the_end_of_what_is_done_is_a_number,)
STEP_PROPERTIES = (epochs_never_go_back,)
'''


def toy(folder: Path, name: str = "toy", text: str = TOY) -> Spec:
    """The spec, in a file of its own."""
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    found = spec_from_file_location(name, path)
    assert found is not None
    assert found.loader is not None
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return Spec(module)
