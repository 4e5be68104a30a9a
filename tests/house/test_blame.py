"""One table decides whether a RocketMQ store accuses its broker; other modules ask it, and decide nothing again."""

import ast
from collections import Counter
from collections.abc import Iterable

from tests.house.debts import CIRCUMSTANCES
from tests.house.project import Module, listed, modules
from tests.house.samples import module

SOURCE = "traces/sources/rocketmq/"
TABLE = f"{SOURCE}blame/"
CIRCUMSTANCE = {"clean", "live", "copied", "first_life", "of_moments", "settings_apply", "forgets"}
OPENED = f"{SOURCE}store/directory.py"  # where these are found out
FINDINGS = f"{SOURCE}joining/findings.py"  # where the table's doubts are added


def questions(of: Iterable[Module]) -> dict[str, int]:
    """The number of questions for a circumstance of a store, by module, without those of the table."""
    counts = {
        str(one.path).removeprefix(SOURCE): sum(map(is_question, ast.walk(one.tree)))
        for one in of
        if str(one.path).startswith(SOURCE) and not str(one.path).startswith((TABLE, OPENED))
    }
    return {path: count for path, count in counts.items() if count}


def is_question(node: ast.AST) -> bool:
    """True for `store.clean` and its like."""
    if not isinstance(node, ast.Attribute) or node.attr not in CIRCUMSTANCE:
        return False
    return ast.unparse(node.value).rpartition(".")[2] in ("store", "source")


def doubting(of: Iterable[Module]) -> Counter[str]:
    """The number of doubts that modules add by themselves."""
    return Counter(
        str(one.path)
        for one in of
        for node in ast.walk(one.tree)
        if isinstance(node, ast.Call)
        and str(one.path).startswith(SOURCE)
        and str(one.path) != FINDINGS
        and ast.unparse(node.func).endswith((".doubt", ".inconclusive.append"))
    )


def test_a_circumstance_of_a_store_is_asked_for_where_it_selects_how_to_read() -> None:
    found = questions(modules("traces"))
    more = [path for path, count in found.items() if count > CIRCUMSTANCES.get(path, 0)]
    assert not more, listed([f"{path}: a new question: a cell of blame/ is to decide it" for path in more])
    assert found == CIRCUMSTANCES, "count again in `debts.CIRCUMSTANCES`: there are fewer questions now"


def test_every_doubt_is_a_cell() -> None:
    found = doubting(modules("traces"))
    assert found == {f"{SOURCE}check.py": 1}, listed([f"{path}: blame() adds the doubt of a cell" for path in found])


def test_a_question_and_a_doubt_are_caught() -> None:
    asks = module(f"{SOURCE}a.py", "if self.store.clean or not judged.store.first_life:\n    judged.doubt('lost')")
    other = module(f"{SOURCE}b.py", "rocksdb.copied(folder); found.clean")
    assert questions([asks, other]) == {"a.py": 2}
    assert doubting([asks, other]) == {f"{SOURCE}a.py": 1}
