"""The cigarette smokers: a dealer lays all ingredients but one on the table, and who has that one smokes.

As TLA+'s CigaretteSmokers has it. It begins with ingredient 0 missing: every other beginning is reached from there.
"""

from dataclasses import dataclass
from typing import NewType

from gapless.spec.language import Bound, Map, applies, implies, replace, require

Ingredient = NewType("Ingredient", int)
INGREDIENTS = 3


@dataclass(frozen=True, slots=True)
class State:
    """The table, and the smokers, each named by the ingredient that he has."""

    ingredients: int = INGREDIENTS  # which no step changes
    laid: bool = True  # all ingredients but one lie on the table
    missing: Ingredient = Ingredient(0)  # that one, while they lie there; 0 otherwise
    smoking: Map[Ingredient, bool] = Map(False)


def light(s: State, smoker: Ingredient) -> State:
    """A smoker takes what lies on the table, and smokes."""
    require(s.laid, "table-is-laid", because="the ingredients lie on the table", otherwise="two smoke at once")
    require(
        smoker == s.missing,
        "smoker-has-the-missing-one",
        because="the smoker has the ingredient that is missing",
        otherwise="he smokes what he has not",
    )
    return replace(s, laid=False, missing=Ingredient(0), smoking=s.smoking.set(smoker, True))


def lay(s: State, smoker: Ingredient, missing: Ingredient) -> State:
    """A smoker has smoked, and the dealer lays the table again."""
    applies(0 <= missing < s.ingredients)
    require(s.smoking[smoker], "smoker-smokes", because="the smoker smokes", otherwise="another one still smokes")
    return replace(s, laid=True, missing=missing, smoking=s.smoking.set(smoker, False))


def only_one_smokes(s: State, a: Ingredient, b: Ingredient) -> bool:
    """Otherwise ingredients were used twice."""
    return a == b or not (s.smoking[a] and s.smoking[b])


def the_table_is_laid_while_none_smokes(s: State, smoker: Ingredient) -> bool:
    """Otherwise two smoke at once."""
    return implies(s.laid, not s.smoking[smoker])


INITIAL = State()
ACTIONS = (light, lay)
INVARIANTS = (only_one_smokes, the_table_is_laid_while_none_smokes)
BOUND = Bound(
    says="all states",
    within=lambda s: True,
    numbers={
        "smoker": range(INGREDIENTS),
        "missing": range(INGREDIENTS),
        "a": range(INGREDIENTS),
        "b": range(INGREDIENTS),
    },
)
