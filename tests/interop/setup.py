"""The setup of every broker of a run, and the folders of its stores."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.interop.broker import Broker, free_port


@dataclass(frozen=True)
class Setup:
    """`work`: a folder for each store, by its name."""

    java: str
    jars: Path
    work: Path

    def broker(self, name: str, **settings: str | int) -> Broker:
        """One over `work/name/store`."""
        return Broker(self.work / name, self.jars, self.java, free_port(), settings)

    def fresh(self, name: str) -> Path:
        """`work/name`, empty."""
        home = self.work / name
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        return home
