"""No file is tied to one machine: neither to its paths nor to where it gets its packages."""

import pytest

from tests.house.project import ROOT, listed_at, project_files

# Written with bars, or this file would be the first to be caught.
PATHS = [name.replace("|", "/") for name in ("|work|", "|root|", "|tmp|venv")]
REGISTRIES = [
    name.replace("|", ".")
    for name in (
        "pypi|org",
        "pythonhosted|org",
        "repo|maven|apache|org",
        "repo1|maven|org",
        "registry|npmjs|org",
    )
]
OF_ONE_MACHINE = {
    **dict.fromkeys(PATHS, "a path relative to the project, or `tmp_path`"),
    **dict.fromkeys(REGISTRIES, "the package's name: where packages come from is for each machine to say"),
}


def ties_to_one_machine(text: str) -> list[str]:
    """Paths of one machine and hosts of registries."""
    return [
        f"{number}: `{found}`: say {instead}"
        for number, line in enumerate(text.splitlines(), start=1)
        for found, instead in OF_ONE_MACHINE.items()
        if found in line
    ]


def test_no_file_is_tied_to_one_machine() -> None:
    paths = project_files()
    if not paths:
        pytest.skip("no git, or not in a repository")
    for path in paths:
        complaints = ties_to_one_machine(path.read_bytes().decode(errors="replace"))
        assert not complaints, listed_at(path.relative_to(ROOT), complaints)


@pytest.mark.parametrize("found", OF_ONE_MACHINE)
def test_a_tie_to_one_machine_is_caught(found: str) -> None:
    assert ties_to_one_machine(f"first\nsee {found}here") == [f"2: `{found}`: say {OF_ONE_MACHINE[found]}"]
