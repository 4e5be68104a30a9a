"""One worker reads and parses the project, once, for all of these tests; and lets go of it behind them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.project import parsed


@pytest.hookimpl(tryfirst=True)  # before the group becomes part of a test's name
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group("house"))


@pytest.fixture(scope="package", autouse=True)
def _trees() -> Iterator[None]:
    """The syntax trees of all files are 200 MB."""
    yield
    parsed.cache_clear()
