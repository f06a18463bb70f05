"""LangChain's, LlamaIndex' and Haystack's own tests of their splitters, answered by our drop-ins.

Source distributions are taken from the folder that CHUNKADAPTERS_SDISTS names, or downloaded where it is "download".
"""

from __future__ import annotations

import io
import os
import tarfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from integration_tests.peers.known import KNOWN
from integration_tests.peers.run import Outcome, run_framework
from integration_tests.peers.sources import PACKAGES, find, unpack_tests

pytestmark = pytest.mark.peers

# How many of the tests that run here call a splitter: fewer, and the drop-ins would not have been asked.
ANSWERED = {"langchain": 80}


def outcomes(framework: str) -> list[Outcome]:
    """What became of a framework's tests; the test is skipped where their source is not at hand."""
    package, wanted = PACKAGES[framework], os.environ.get("CHUNKADAPTERS_SDISTS", "")
    try:
        version(package)
    except PackageNotFoundError:
        pytest.skip(f"{package} is not installed")
    if not wanted:
        pytest.skip(
            f'CHUNKADAPTERS_SDISTS is not set: "download" fetches the source distribution of {package}, '
            "a folder is where it lies"
        )
    if wanted == "download":
        return run_framework(framework)
    if find(package, Path(wanted)) is None:
        pytest.skip(f"{wanted} holds no source distribution of {package} {version(package)}")
    return run_framework(framework, Path(wanted))


def test_langchain() -> None:
    tests = outcomes("langchain")
    known = KNOWN["langchain"]
    assert sum(bool(test.answered_by) for test in tests if test.original == "passed") >= ANSWERED["langchain"]
    new = {test.name: test.said for test in tests if test.fails and test.name not in known}
    assert not new, "tests of LangChain fail that are not known to fail"
    mended = [test.name for test in tests if test.name in known and test.drop_in == "passed"]
    assert not mended, "tests that are known to fail pass: take them out of known.py and docs/evidence/golden.md"
    assert set(known) <= {test.name for test in tests}, "known.py names tests that LangChain no longer has"
    other = [test.name for test in tests if test.fails and test.pared != "passed"]
    assert not other, "these fail without what our documents have besides, too"


@pytest.mark.parametrize("framework", ["llamaindex", "haystack"])
def test_the_others_ship_no_tests(framework: str) -> None:
    assert outcomes(framework) == [], f"{PACKAGES[framework]} ships tests by now: run them against the drop-ins"


def test_only_tests_are_unpacked_and_nothing_outside_the_folder(tmp_path: Path) -> None:
    archive = tmp_path / "peer-1.0.tar.gz"
    with tarfile.open(archive, "w:gz") as made:
        for name in ("peer-1.0/peer/test_inside.py", "peer-1.0/tests/test_one.py", "peer-1.0/tests/data/notes.txt"):
            member = tarfile.TarInfo(name)
            member.size = 1
            made.addfile(member, io.BytesIO(b"#"))
    folder = tmp_path / "unpacked"
    folder.mkdir()
    assert unpack_tests(archive, folder) == [folder / "tests/test_one.py"]
    assert not (folder / "peer").exists()


@pytest.mark.parametrize("name", ["peer-1.0/tests/../../../outside.py", "peer-1.0/tests/link.py"])
def test_an_archive_that_reaches_outside_is_refused(tmp_path: Path, name: str) -> None:
    archive = tmp_path / "peer-1.0.tar.gz"
    with tarfile.open(archive, "w:gz") as made:
        member = tarfile.TarInfo(name)
        if name.endswith("link.py"):
            member.type, member.linkname = tarfile.SYMTYPE, "../../../outside.py"
        made.addfile(member)
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    with pytest.raises(ValueError, match="is no plain file inside the folder of tests"):
        unpack_tests(archive, folder)
    assert not list(tmp_path.rglob("outside.py"))
