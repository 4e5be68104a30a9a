"""Mistakes in the claims of a spec: each is refused with file and line, what is expected, and what to write."""

import re
import tomllib
from pathlib import Path

import pytest

from benchmarks.protocols import replaced
from gapless.traces.specs import load
from tests.support.command_line import ROOT

EWD840 = (ROOT / "examples/protocols/ewd840.py").read_text(encoding="utf-8")
MISTAKES = tomllib.loads(Path(__file__).with_name("claim_mistakes.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_claim_is_refused_with_its_line(mistake: str, tmp_path: Path) -> None:
    text = EWD840
    for old, new in MISTAKES[mistake]["changes"]:
        text = replaced(text, old, new)
    (tmp_path / "ewd840.py").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="ewd840") as refused:
        load(tmp_path / "ewd840.py")
    assert re.search(r"ewd840\.py:\d+: ", str(refused.value))
    assert MISTAKES[mistake]["complaint"] in str(refused.value)
