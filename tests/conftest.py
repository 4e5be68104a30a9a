"""How much randomness the tests use: HYPOTHESIS_PROFILE names one of the profiles below."""

import os

import pytest
from hypothesis import settings

settings.register_profile("quick", max_examples=20, deadline=None)
# The same cases on every machine, every time.
settings.register_profile("ci", max_examples=60, derandomize=True, deadline=None)
settings.register_profile("night", max_examples=5_000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What one process must do by itself begins first, so that nobody waits for it at the end."""
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)
