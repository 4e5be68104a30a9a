"""`gapless demo`: both stores are checked, and no folder of a user's is touched."""

from pathlib import Path

import pytest

from gapless import check
from gapless.demo.demonstration import Demonstration
from gapless.traces.problems import UsageError


def test_the_demo_finds_nothing_and_then_one_violation(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    folder = tmp_path / "demo"
    assert Demonstration(folder, shown.append).run()
    printed = capfd.readouterr().out
    assert printed.count("entry-points-at-its-message") == 1
    assert "orders/1" in (folder / "report.html").read_text()
    assert any("--report" in line for line in shown)
    monkeypatch.setattr(Demonstration, "_damage", lambda _: None)
    assert not Demonstration(folder, shown.append).run(), "it finds something else, and says so"
    assert check([folder / "damaged/orders"]).verdict == "conforms", "what the first run left was replaced"


@pytest.mark.parametrize("name", ["a file", "a folder with other files"])
def test_a_folder_of_the_user_is_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"mine\.txt"):
        Demonstration(tmp_path / "mine.txt" if name == "a file" else tmp_path, lambda _: None).run()
    assert {path.name for path in tmp_path.iterdir()} == {"whole", "mine.txt"}
