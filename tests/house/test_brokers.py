"""Outside of its folder, no code knows a broker by its name: commands, tables and watches ask the registry."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from tests.house.project import Module, listed, modules
from tests.house.samples import module

BROKERS = "rocketmq", "pulsar", "kafka"
ROOMS = "native", "traces", "properties", "gapless", "manual"
"""The rooms that are to know none: specs have profiles and deviations of brokers, and `impl/` is made after one."""
PAGE = re.compile(r"docs/[\w/-]+(\.md)?(#[\w-]+)?|apache/\w+#\d+")
"""A citation: of a page of ours, or of a public report."""
NAMED = {
    "traces/options.py": 1,  # the profile where none is named
    "traces/sources/registry.py": 6,  # a line for each source: its name, and its place
    "traces/sources/foreign.py": 2,  # the sentence on what is read and what is not, and the folders of other systems
    "traces/report/public_links.py": 1,  # tickets of a public tracker become links
    "properties/proof/claims/kafka_transaction.py": 1,  # the spec that its claims are about
    "properties/faults/documented_defects.py": 1,  # the spec of which defects are planted
    "properties/faults/false_friends.py": 17,  # the profile that a false friend is judged by
    "gapless/commands/options.py": 2,  # the help of PATH
    "gapless/commands/examples.py": 4,  # examples in the help
    "gapless/demo/demonstration.py": 1,  # the demo shows a broker's store, and says whose it is
    "manual/navigation.py": 2,  # the table of contents has the pages of folders
}
"""Modules in which code names brokers, and how often."""


def own(path: str) -> bool:
    """True for a module in the folder of a source."""
    return path.startswith(tuple(f"traces/sources/{broker}/" for broker in BROKERS))


def texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every name and every text of a module, with its line; comments and docstrings are for readers."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in alone:
                yield node.lineno, PAGE.sub("", text)
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield node.lineno, name
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.Import(names=names):
                yield from ((node.lineno, one.name) for one in names)
            case ast.ImportFrom(module=whence, names=names):
                yield node.lineno, " ".join([whence or "", *(one.name for one in names)])


def naming(of: Iterable[Module]) -> list[tuple[str, int, str]]:
    """The places where code names a broker."""
    return [
        (str(found.path), line, text)
        for found in of
        if not own(str(found.path))
        for line, text in texts(found.tree)
        if any(broker in text.lower() for broker in BROKERS)
    ]


def test_no_code_outside_of_its_folder_knows_a_broker_by_its_name() -> None:
    found = naming(one for room in ROOMS for one in modules(room))
    counts = Counter(path for path, _, _ in found)
    new = [f"{path}:{line}: {text!r}" for path, line, text in found if counts[path] > NAMED.get(path, 0)]
    assert not new, listed([f"{place}: ask the registry (traces/sources/verbs.py)" for place in new])
    assert counts == NAMED, "strike out of `NAMED` what names none any more"


def test_a_line_that_names_a_broker_is_caught() -> None:
    for line in (
        "from gapless.traces.sources.rocketmq.source import SOURCE",
        "import gapless.traces.sources.pulsar",
        "class RocketMQStore: ...",
        "if source.kind == 'rocketmq-store': ...",
        "text = f'a Kafka folder: {path}'",
        "registry.pulsar.open()",
        "open(kafka_home=1)",
    ):
        assert [found[:2] for found in naming([module("traces/watch.py", line)])] == [("traces/watch.py", 1)], line
        assert naming([module("traces/sources/pulsar/source.py", line)]) == []
    for line in (
        '"""Says how RocketMQ does it."""',
        "because = 'docs/rocketmq.md#cl3, apache/pulsar#25908'",
        "x = 1  # Kafka",
    ):
        assert naming([module("traces/watch.py", line)]) == []
