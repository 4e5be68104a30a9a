"""A spec of a few lines, with a guard that protects nothing and a field that nobody looks at."""

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
    require(more < 100, "there-is-not-too-much", because="there is not too much", otherwise="nobody knows")
    require(honest, "it-is-so", because="it is so", otherwise="somebody is misled")
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


def toy(folder: Path) -> Spec:
    """The spec, in a file of its own."""
    path = folder / "toy.py"
    path.write_text(TOY, encoding="utf-8")
    found = spec_from_file_location("toy", path)
    assert found is not None
    assert found.loader is not None
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return Spec(module)
