"""Modules that are made up, as examples of what a house rule catches."""

from pathlib import Path

from tests.house.project import Module


def module(path: str, source: str) -> Module:
    return Module(Path(path), source)
