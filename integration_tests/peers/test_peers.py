"""LangChain's own tests of its splitters, with ours in their place: those that pass with the originals pass with ours.

The source distribution is taken from the folder that CHUNKADAPTERS_SDISTS names, or downloaded where it is "download".
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

pytestmark = pytest.mark.peers

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "langchain-text-splitters"
KNOWN = set(json.loads(Path(__file__).with_name("known.json").read_text(encoding="utf-8"))["langchain"])
# With the originals, with ours, and with ours less the metadata and ids that they add.
MODES = ("original", "drop_in", "pared")
# No test is to go online, nor to wait until it has tried: a model that is not at hand fails with the originals, too.
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
# How many of the tests that run here call a splitter: fewer, and ours would not have been asked.
ANSWERED = 80


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """The source distribution of the installed version; the test is skipped where it is not at hand."""
    pytest.importorskip("langchain_text_splitters", reason=f"{PACKAGE} is not installed")
    folder = os.environ.get("CHUNKADAPTERS_SDISTS", "")
    if not folder:
        pytest.skip(f'CHUNKADAPTERS_SDISTS is not set: "download" fetches {PACKAGE}, a folder is where it lies')
    if folder == "download":
        folder = str(tmp_path)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", f"--no-binary={PACKAGE}"]
        subprocess.run([*pip, "--dest", folder, f"{PACKAGE}=={version(PACKAGE)}"], check=True)
    path = Path(folder) / f"{PACKAGE.replace('-', '_')}-{version(PACKAGE)}.tar.gz"
    if not path.exists():
        pytest.skip(f"{folder} holds no {path.name}")
    return path


def unpack_tests(archive: Path, folder: Path) -> list[Path]:
    """Unpack the folder of tests alone, so that the installed package is what they test; the test files in it."""
    with tarfile.open(archive) as opened:
        for member in opened:
            inside = PurePosixPath(*PurePosixPath(member.name).parts[1:])  # without package-version/
            if inside.parts[:1] == ("tests",):
                opened.extract(member.replace(name=str(inside), deep=False), folder, filter="data")
    return sorted(path for path in folder.rglob("test_*.py") if path.is_file())


def outcomes(folder: Path, files: list[Path], mode: str) -> dict[str, Any]:
    """What became of each test, as the plugin writes it down."""
    record, settings = folder / f"{mode}.json", folder / "pytest.ini"
    settings.write_text("[pytest]\n", encoding="utf-8")
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | OFFLINE | {"PYTHONPATH": path, "PEERS_MODE": mode, "PEERS_RECORD": str(record)}
    options = ["-c", str(settings), "--rootdir", str(folder), "-q", "-p", "no:cacheprovider", "--import-mode=importlib"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "integration_tests.peers.plugin", *options, *map(str, files)],
        capture_output=True,
        cwd=folder,
        env=environment,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    results: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
    return results


def test_what_passes_with_langchains_splitters_passes_with_ours(archive: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tests"
    folder.mkdir()
    files = unpack_tests(archive, folder)
    original, ours, pared = (outcomes(folder, files, mode) for mode in MODES)
    passing = [name for name, result in original.items() if result["outcome"] == "passed"]
    failing = {name: ours[name]["said"] for name in passing if ours[name]["outcome"] != "passed"}
    assert sum(bool(ours[name]["answered_by"]) for name in passing) >= ANSWERED
    assert {name: said for name, said in failing.items() if name not in KNOWN} == {}
    assert original.keys() >= KNOWN, "known.json names tests that LangChain no longer has"
    assert failing.keys() >= KNOWN, "tests that are known to fail pass: take them out of known.json and golden.md"
    other = [name for name in failing if pared[name]["outcome"] != "passed"]
    assert not other, "these fail without what our documents have besides, too"
