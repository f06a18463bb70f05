"""What a release says of itself agrees with what it is (docs/reference/releases.md)."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib.metadata import requires
from importlib.metadata import version as installed_version
from pathlib import Path

import chunkcore
import pytest
import yaml
from integration_tests.packages.smoke import EXTRAS
from integration_tests.packages.versions import copy_checkout, lowest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

tomllib = pytest.importorskip("tomllib", reason="Python 3.11 reads TOML")

ROOT = Path(__file__).resolve().parents[1]
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
TABLES = tomllib.loads(PROJECT)


def extras() -> set[str]:
    return set(TABLES["project"]["optional-dependencies"]) - {"all"}


def test_the_version_stands_in_one_place() -> None:
    assert installed_version("chunkadapters") == chunkcore.__version__
    files = [ROOT / "pyproject.toml", ROOT / "CITATION.cff", *(ROOT / "src").rglob("*.py")]
    holders = [file.name for file in files if f'"{chunkcore.__version__}"' in file.read_text(encoding="utf-8")]
    assert holders == ["__init__.py"]


def test_workflows_pin_actions_by_hash_and_a_release_needs_the_tests() -> None:
    workflows = {file.stem: file.read_text(encoding="utf-8") for file in (ROOT / ".github/workflows").glob("*.yml")}
    uses = re.findall(r"uses: ([^\s.]\S+)", "".join(workflows.values()))
    assert uses
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action) for action in uses)
    jobs = yaml.safe_load(workflows["release"])["jobs"]
    assert jobs["build"]["needs"] == "tests"
    assert jobs["tests"]["uses"] == "./.github/workflows/tests.yml"
    pythons = yaml.safe_load(workflows["tests"])["jobs"]["linux"]["strategy"]["matrix"]["python"]
    assert pythons == re.findall(r'"Programming Language :: Python :: (3\.\d+)"', PROJECT)


def test_the_hook_before_a_commit_is_the_linter_that_is_locked() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert hooks["repos"][0]["rev"] == f"v{locked()['ruff']}"


def test_the_changelog_tells_what_comes_next_first() -> None:
    titles = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert titles[0] == "0.3.0 (unreleased)"
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", title) for title in titles[1:])


def test_every_extra_has_a_promise_that_make_test_packages_checks() -> None:
    # Without these tiktoken encodes, and texts without spaces are cut anywhere.
    assert set(EXTRAS) == extras() - {"fast", "words"}


def test_the_page_of_extras_names_every_extra() -> None:
    page = (ROOT / "docs" / "reference" / "install.md").read_text(encoding="utf-8")
    table = page.split("| extra | adds | MB |")[1].split("\n\n")[0]
    assert set(re.findall(r"`([\w-]+)`", "".join(row.split("|")[1] for row in table.splitlines()[2:]))) >= extras()


def test_every_requirement_has_a_lowest_and_a_highest_version() -> None:
    extras_and_groups = [*TABLES["project"]["optional-dependencies"].values(), *TABLES["dependency-groups"].values()]
    needed = [Requirement(line) for table in (TABLES["project"]["dependencies"], *extras_and_groups) for line in table]
    assert len(needed) > 60
    for requirement in needed:
        if requirement.name != "chunkadapters":
            assert sorted(bound.operator for bound in requirement.specifier) == ["<", ">="], requirement


def locked() -> dict[str, str]:
    """The version of each package that the lock file has for this Python."""
    entries = re.split(r"\n(?=\S)", (ROOT / ".ci" / "requirements.lock").read_text(encoding="utf-8"))
    assert all("--hash=sha256:" in entry for entry in entries)
    pins = [Requirement(entry.split(" \\")[0]) for entry in entries]
    kept = [pin for pin in pins if not pin.marker or pin.marker.evaluate()]
    return {pin.name: str(pin.specifier).removeprefix("==") for pin in kept}


def test_the_lock_file_has_hashes_and_versions_within_the_bounds() -> None:
    (names,) = re.findall(r"^LOCKED = .*?,([^)]*)\)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for requirement in map(Requirement, requires("chunkadapters") or []):
        needed = any(not requirement.marker or requirement.marker.evaluate({"extra": e}) for e in names.split())
        if needed and requirement.name not in {"torch", "chunkadapters"}:
            assert locked()[canonicalize_name(requirement.name)] in requirement.specifier, requirement


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the page has the versions of Python 3.11")
def test_the_page_of_versions_has_what_is_tested() -> None:
    page = (ROOT / "docs" / "reference" / "install.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| ([\d.]+) \| ([\d.]+) \|$", page, flags=re.MULTILINE)
    assert len(rows) == 8
    lowest_bounds = {
        requirement.name: requirement.specifier for requirement in map(Requirement, requires("chunkadapters") or [])
    }
    for name, lowest_version, version in rows:
        assert f">={lowest_version}" in map(str, lowest_bounds[name]), name
        assert version == locked()[name], name


def test_a_requirement_without_a_lowest_version_is_told() -> None:
    with pytest.raises(ValueError, match=r"numpy.*expected NAME>=VERSION"):
        lowest(["numpy"], [])
    with pytest.raises(ValueError, match="numpy<2"):
        lowest(["numpy<2"], [])
    assert lowest(['numpy; extra == "other"'], []) == []


def test_other_versions_are_tested_with_all_that_git_would_take(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    subprocess.run(["git", "init", "--quiet", str(checkout)], check=True)
    (checkout / ".gitignore").write_text("*.log\n", encoding="utf-8")
    for name in ("Makefile", "tests/test_é.py", "run.log", "gone.py"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text(name, encoding="utf-8")
    subprocess.run(["git", "add", "Makefile", "gone.py"], cwd=checkout, check=True)
    (checkout / "gone.py").unlink()
    copy_checkout(checkout, tmp_path / "copy")
    copied = {file.relative_to(tmp_path / "copy").as_posix() for file in (tmp_path / "copy").rglob("*.*")}
    assert copied == {".gitignore", "tests/test_é.py"}
    assert (tmp_path / "copy" / "Makefile").read_text(encoding="utf-8") == "Makefile"


def test_no_named_tuple_is_generic_since_python_3_10_refuses_such_a_class() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and len(node.bases) > 1 and "NamedTuple" in map(ast.unparse, node.bases)
    ]
    assert not found
