"""The README's detection rates are those that were found: `make mutants` writes the pages, and the README from them."""

import pytest

from tests.support import detection

PLANTED = "# …\n\n3 of 4 planted faults are caught, by every seed (75.0%).\nOf 100 …, and of these 3 … (60.0%).\n"
KAFKA = "# …\n\n4 of 5 faults are detected (80.0%), and 3 of 3 at the right place (100.0%).\n"
MUTANTS = "9 of 10 mutants are judged right, at the right line (90.00%).\n"


def test_the_readme_says_what_was_found() -> None:
    readme = detection.README.read_text("utf-8")
    text = detection.rates(*(page.read_text("utf-8") for page in detection.PAGES))
    assert detection.written(readme, text) == readme, "run `make mutants`"


def test_another_number_is_another_text() -> None:
    text = detection.rates(PLANTED, MUTANTS, KAFKA)
    assert "3 of 4 planted faults are caught" in text
    assert "Of recordings that were damaged at random, 9 of 10 are judged right" in text
    readme = detection.written(f"before {detection.BEGIN}old{detection.END}\nafter\n", text)
    assert readme == f"before {detection.BEGIN}{text}{detection.END}\nafter\n"
    assert "4 of 5 faults are detected (80.0%)" in text
    assert detection.rates(PLANTED, MUTANTS.replace("9 of", "8 of"), KAFKA) != text


def test_a_readme_without_a_place_for_them_is_refused() -> None:
    with pytest.raises(ValueError, match="expected <!-- detection rates"):
        detection.written("nothing\n", "")
