"""The wheel next to a project with its own `spec/` and `tests/`: neither disturbs the other."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from zipfile import ZipFile

import pytest

pytestmark = [pytest.mark.xdist_group("wheel"), pytest.mark.slow]  # one worker, so that one wheel is built

ROOT = Path(__file__).parents[2]
ROOMS = ("gapless", "impl", "native", "properties", "spec", "traces")
SHIPPED = (".py", ".j2", "py.typed", "orders.tar.xz")

THEIR_PROJECT = {
    "spec/__init__.py": "WHOSE = 'theirs'\n",
    "traces/__init__.py": "WHOSE = 'theirs'\n",
    "tests/__init__.py": "",
    "tests/helper.py": "WHOSE = 'theirs'\n",
    "tests/test_theirs.py": """
import gapless.spec.language
import spec, traces
from tests import helper


def test_each_gets_its_own():
    assert spec.WHOSE == traces.WHOSE == helper.WHOSE == "theirs"
    assert gapless.spec.language.__name__ == "gapless.spec.language"
    assert gapless.spec is not spec
""",
    "pytest.ini": "[pytest]\ntestpaths = tests\n",
}

ONE_MODULE = """
import sys
import gapless.spec.language
from gapless.spec.language import require
assert require is gapless.spec.language.require
assert not {"spec", "impl", "properties", "traces"} & sys.modules.keys()
copies = [name for name in sys.modules if name.endswith("spec.language")]
assert copies == ["gapless.spec.language"], copies
print(gapless.spec.language.__file__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy so that no left-over of an earlier build gets in and none stays behind."""
    copy = tmp_path_factory.mktemp("source")
    for room in ROOMS:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / room, copy / room, symlinks=True, ignore=ignored)
    shutil.copytree(ROOT / "docs", copy / "docs")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    run("-m", "build", "--wheel", "--no-isolation", "--outdir", copy / "dist", cwd=copy)
    (built,) = (copy / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def theirs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's project, with `site/` next to it, into which the wheel is installed."""
    project = tmp_path_factory.mktemp("theirs")
    for name, text in THEIR_PROJECT.items():
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(text)
    install = ("-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check")
    run(*install, "--target", project / "site", wheel, cwd=project)
    return project


def run(*args: str | Path, cwd: Path, path: tuple[Path, ...] = ()) -> str:
    """Return the output of Python, with `path` first, and nothing of this directory or environment."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(cwd),
        "PYTHONPATH": os.pathsep.join(map(str, path)),
    }
    done = subprocess.run(
        [sys.executable, "-P", *args], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def shipped_files() -> set[str]:
    """List the places of the rooms' files in a wheel."""
    names = set()
    for room in ROOMS:
        package = "gapless" if room == "gapless" else f"gapless/{room}"
        files = [path for path in (ROOT / room).rglob("*") if path.name.endswith(SHIPPED)]
        names |= {f"{package}/{path.relative_to(ROOT / room).as_posix()}" for path in files}
    return names | {f"gapless/{name}" for name in cited_pages()}


def cited_pages() -> list[str]:
    """List the pages of the documentation that `pyproject.toml` names: reports carry passages of them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    data = project["tool"]["setuptools"]["package-data"]["gapless"]
    return [name for name in data if name.startswith("docs/")]


def test_the_wheel_holds_the_rooms_and_nothing_else(wheel: Path) -> None:
    names = ZipFile(wheel).namelist()
    assert len(names) == len(set(names)), "a file is in the wheel twice"
    assert {name for name in names if ".dist-info/" not in name} == shipped_files()
    assert {"gapless/py.typed", "gapless/spec/language.py", "gapless/traces/sources/rocketmq/__init__.py"} <= set(names)
    assert any(name.startswith("gapless/traces/report/templates/") for name in names)


def declared(wheel: Path) -> set[str]:
    """The distributions that the wheel's metadata asks for, always or with an extra that is for users."""
    with ZipFile(wheel) as opened:
        (metadata,) = (name for name in opened.namelist() if name.endswith(".dist-info/METADATA"))
        lines = opened.read(metadata).decode().splitlines()
    asked = [line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist: ")]
    return {normal(re.split(r"[^\w.-]", line)[0]) for line in asked if 'extra == "dev"' not in line}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def foreign(source: str) -> set[str]:
    """The packages that are neither ours nor Python's, of which a module imports something."""
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
    return {name.split(".")[0] for name in names} - sys.stdlib_module_names - {"gapless"}


def test_modules_import_what_the_metadata_declares(wheel: Path) -> None:
    providers, promised = packages_distributions(), declared(wheel)
    with ZipFile(wheel) as opened:
        modules = {name: foreign(opened.read(name).decode()) for name in opened.namelist() if name.endswith(".py")}
    assert set().union(*modules.values()) > {"numpy", "hypothesis", "pyspark"}
    undeclared = [
        f"{module} imports {package}: declare it in pyproject.toml, or do without"
        for module, packages in modules.items()
        for package in packages
        if not {normal(name) for name in providers[package]} & promised
    ]
    assert not undeclared, "\n".join(undeclared)


WITHOUT_HYPOTHESIS = """
import sys
sys.modules["hypothesis"] = None
import gapless.properties.machines.crashes.__main__
import gapless.properties.machines.interleavings.__main__
import gapless.properties.machines.interrupts.__main__
try:
    import gapless.properties.machines.stateful.log_machine
except ModuleNotFoundError as error:
    print(error)
"""


def test_only_the_machines_for_hypothesis_need_it(theirs: Path) -> None:
    result = run("-c", WITHOUT_HYPOTHESIS, cwd=theirs.parent, path=(theirs / "site",))
    assert result.strip() == "these machines need Hypothesis: pip install 'gapless[spec]'"


def test_a_project_with_a_spec_of_its_own_keeps_it(theirs: Path) -> None:
    result = run("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=theirs, path=(theirs, theirs / "site"))
    assert "1 passed" in result


def test_the_wheel_imports_as_one_package(theirs: Path) -> None:
    place = run("-c", ONE_MODULE, cwd=theirs.parent, path=(theirs / "site",)).strip()
    assert Path(place) == theirs / "site/gapless/spec/language.py"


A_PASSAGE = """
from gapless.traces.report.page.citations import linked
print(linked("docs/rocketmq.md#cl3"), linked("docs/record.md"))
"""


def test_reports_of_the_wheel_carry_what_they_cite(theirs: Path) -> None:
    result = run("-c", A_PASSAGE, cwd=theirs.parent, path=(theirs / "site",))
    assert result.strip() == '<a href="#source-rocketmq.cl3">The RocketMQ store #cl3</a> docs/record.md'


def test_the_door_opens_from_the_wheel(theirs: Path) -> None:
    result = run("-m", "gapless", "--help", cwd=theirs, path=(theirs, theirs / "site"))
    assert "gapless check" in result
    assert (theirs / "site/bin/gapless").exists()


def test_pytest_finds_the_plugin_in_the_wheel(theirs: Path) -> None:
    result = run("-m", "pytest", "--help", "-p", "no:cacheprovider", cwd=theirs.parent, path=(theirs / "site",))
    assert "--gapless-traces=N" in result


def test_the_working_tree_imports_as_one_package(tmp_path: Path) -> None:
    place = run("-c", ONE_MODULE, cwd=tmp_path, path=(ROOT,)).strip()
    assert Path(place).resolve() == ROOT / "spec/language.py"


def test_no_message_names_a_page_that_a_wheel_lacks() -> None:
    found = []
    for path in (path for room in ("traces", "gapless") for path in sorted((ROOT / room).rglob("*.py"))):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docs)
        found += [
            f"{path}:{node.lineno}" for node in texts if isinstance(node.value, str) and "README.md" in node.value
        ]
    assert not found, "name a command instead, such as `gapless schema events`"


@pytest.mark.skipif(Path(sys.prefix) != ROOT / ".venv", reason="runs in the environment of `make setup`")
def test_the_editable_install_imports_as_one_package(tmp_path: Path) -> None:
    place = run("-c", ONE_MODULE, cwd=tmp_path).strip()
    assert Path(place).resolve() == ROOT / "spec/language.py"


def test_what_is_in_a_group_stays_on_one_worker(request: pytest.FixtureRequest) -> None:
    """Without groups, every worker of pytest-xdist builds a wheel of its own, and starts a Spark."""
    if getattr(request.config.option, "loadgroup", False):
        assert request.node.nodeid.endswith("@wheel"), "take the pytest of constraints.txt"
