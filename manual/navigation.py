"""The site's table of contents, by who reads: a page that is in none of its parts fails the build."""

from __future__ import annotations

from collections.abc import Iterable

CONTENTS: dict[str, tuple[str, ...]] = {
    "Tutorial": ("docs/tutorial",),
    "For operators": ("docs/operator",),
    "For CI engineers": ("docs/ci",),
    "For developers of brokers": (
        "docs/own-system",
        "docs/your-own-spec",
        "docs/your-own-store",
        "docs/black-box",
        "docs/record",
        "docs/coordinator",
    ),
    "For data engineers": ("docs/data",),
    "Reference": (
        "docs/faq",
        "docs/spec-language",
        "docs/generated-runs",
        "reference/commands/gapless",
        "reference/api",
        "reference/rules",
        "reference/steps",
        "reference/events",
        "reference/schema-report",
        "reference/schema-events",
        "reference/schema-client",
        "traces/README",
        "docs/figures",
        "CHANGELOG",
    ),
    "What brokers do": (
        "docs/rocketmq",
        "docs/rocketmq-transactions",
        "docs/rocketmq-tiered",
        "docs/next-start",
        "docs/blame",
        "docs/rocketmq-protocol",
        "docs/rocketmq-traces",
        "docs/pulsar",
        "docs/kafka",
        "docs/kafka-transactions",
        "docs/kafka-clients",
        "docs/reports",
        "docs/defects",
        "docs/detection",
        "docs/kafka-detection",
        "docs/found",
        "traces/sources/rocketmq/README",
    ),
    "Explanation": (
        "README",
        "docs/explanation",
        "docs/design",
        "docs/proposals",
        "docs/performance",
        "docs/protocols",
        "properties/README",
        "properties/faults/guards",
        "properties/faults/zoo",
        "properties/faults/implementation",
        "properties/faults/spec_mutants",
        "spec/README",
        "spec/decisions/0*",
        "impl/README",
        "native/README",
    ),
    "Working on gapless": (
        "CONTRIBUTING",
        "tests/README",
        "tests/recordings/README",
        "tests/recordings/kafka/README",
        "tests/recordings/lab/README",
        "tests/recordings/reports/README",
        "tests/interop/README",
        "benchmarks/README",
        "examples/README",
    ),
}
"""Pages by caption, without their ending; a `*` stands for all of a folder."""


def toctrees() -> str:
    """The table of contents as the first page has it."""
    return "\n".join(_toctree(caption, pages) for caption, pages in CONTENTS.items())


def toctree(pages: Iterable[str], *options: str) -> str:
    """A table of contents that stands in no page's text."""
    return "\n".join(["", "```{toctree}", ":hidden:", ":titlesonly:", *options, "", *pages, "```", ""])


def _toctree(caption: str, pages: tuple[str, ...]) -> str:
    patterns = [":glob:"] if any("*" in page for page in pages) else []
    return toctree((f"/{page}" for page in pages), f":caption: {caption}", *patterns)
