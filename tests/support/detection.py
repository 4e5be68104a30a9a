"""The README's detection rates, made of the pages that `make mutants` writes: `python -m tests.support.detection`."""

from __future__ import annotations

import sys

from gapless.properties.faults import zoo
from tests.support import trace_mutants
from tests.support.command_line import ROOT
from tests.support.kafka import detection as kafka_detection

README = ROOT / "README.md"
PAGES = zoo.PAGE, trace_mutants.PAGE, kafka_detection.PAGE
BEGIN, END = "<!-- detection rates, made by `make mutants` -->", "<!-- end of detection rates -->"


def rates(planted: str, mutants: str, kafka: str) -> str:
    """The sentences of the README, from the pages of defects, of mutants of traces, and of Kafka's files."""
    faults, documented = (line for line in planted.splitlines() if line.endswith("%)."))
    (traces,) = (line for line in mutants.splitlines() if line.endswith("%)."))
    (files,) = (line for line in kafka.splitlines() if line.endswith("%)."))
    damaged = f"Of recordings that were damaged at random, {traces.removesuffix('.').replace(' mutants', '', 1)}"
    listed = documented.replace("documented", "listed", 1)
    return (
        f"[Planted](properties/faults/zoo.md) in our store and specs: {faults} {listed}\n"
        f"[Damaged](docs/detection.md): {damaged}; the plain functions of the spec say which line is right. "
        f"[In Kafka's files](docs/kafka-detection.md), {files}"
    )


def written(readme: str, text: str) -> str:
    """The README with these rates. Raises ValueError where it has no place for them."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"README.md: expected {BEGIN} and {END}")
    return f"{before}{begin}{text}{end}{after}"


def main() -> int:
    """Write them into the README."""
    text = rates(*(page.read_text("utf-8") for page in PAGES))
    README.write_text(written(README.read_text("utf-8"), text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
