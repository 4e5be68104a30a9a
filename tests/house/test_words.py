"""Plain words: what a reader in a second language stumbles over is counted, and no count may grow."""

from pathlib import Path

import pytest

from tests.house import debts, words
from tests.house.words import Page, Place

EXAMPLES = {
    "questions": (
        'def first(s):\n    """Whether there is one."""\n',
        'def first(s):\n    """True if there is one."""\n',
    ),
    "long": (
        f'"""The entries {"of it " * 16}here."""\n',
        '"""The entries. What follows may be as long as it needs to be."""\n',
    ),
    "persons": ("# nobody reads it\n", "# no consumer reads it\n"),
    "riddles": ("was_told = 1  # once\n# more\n", "was_reported = 1  # all invariants hold, and the lock is held\n"),
    "participles": ("class Judged:\n    pass\n", "class Judge:\n    pass\n"),
}


@pytest.mark.parametrize("rule", words.RULES)
def test_a_rule_finds_its_words_and_no_others(rule: str) -> None:
    broken, kept = ([*words.RULES[rule](Page(Path("spec/example.py"), source))] for source in EXAMPLES[rule])
    assert [(place.line, kept) for place in broken] == [(1 if rule != "questions" else 2, [])]


def test_no_area_has_more_of_them_than_it_owes() -> None:
    found = words.counts()
    grown = [
        f"{area}: {name} {n}, at most {owed}: python -m tests.house.words {area} --rule {name}"
        for area, tally in found.items()
        for name, n in tally.items()
        if n > (owed := debts.WORDS.get(area, {}).get(name, 0))
    ]
    assert not grown, "\n".join(grown)
    assert found == debts.WORDS, "lower the numbers in `debts.WORDS`: there are fewer by now"


def test_a_place_is_shown_with_its_line() -> None:
    assert str(Place(Path("spec/log.py"), 3, "class Told")) == "spec/log.py:3: class Told"


def test_the_id_of_a_rule_stays() -> None:
    """Users ignore a rule by its id; a sentence with the same word has no such reason."""
    ids = Page(Path("spec/example.py"), 'require(True, "nobody-waits-too-long")\ndef nobody_waits_too_long(s): ...\n')
    other = Page(Path("spec/example.py"), 'require(True, "nobody-waits-at-all")\n')
    assert (len([*words.persons(ids)]), len([*words.persons(other)])) == (0, 1)
