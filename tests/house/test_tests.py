"""No test imports another: what several need lies in `tests/support/`, which imports no test."""

import ast

import pytest

from tests.house.project import Imports, imported, listed_at, modules


def imported_tests(imports: Imports) -> list[str]:
    """Modules of tests that are imported, or something of theirs."""
    return [
        f"{line}: `{name}` is of a test: move what is shared to `tests/support/`, under a name that says what it is"
        for line, name in imports
        if name.startswith("tests.") and any(part.startswith("test_") for part in name.split("."))
    ]


def test_no_test_is_imported() -> None:
    for module in modules("tests"):
        complaints = imported_tests(module.imports)
        assert not complaints, listed_at(module.path, complaints)


@pytest.mark.parametrize(
    "source",
    [
        "from tests.traces.test_kernels import walks",
        "from tests.traces import test_kernels",
        "def late() -> None:\n    import tests.support.test_stores",
    ],
)
def test_an_import_of_a_test_is_caught(source: str) -> None:
    assert "tests/support/" in "\n".join(imported_tests(tuple(imported(ast.parse(source)))))


def test_support_may_be_imported() -> None:
    assert imported_tests(((1, "tests.support.walks.walks"), (2, "test_of_another_module"))) == []
