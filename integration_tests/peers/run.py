"""Run the tests that the frameworks' source distributions ship for their splitters against our drop-ins.

python -m integration_tests.peers.run [--framework langchain] [--sdists FOLDER]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from integration_tests.peers.known import KNOWN
from integration_tests.peers.sources import PACKAGES, fetch, find, unpack_tests

__all__ = ["Outcome", "main", "run_framework"]

ROOT = Path(__file__).resolve().parents[2]
MODES = ("original", "drop_in", "pared")
# No test is to go online, nor to wait until it has tried: a model that is not at hand fails with the originals, too.
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HAYSTACK_TELEMETRY_ENABLED": "False"}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one of a framework's tests: "passed", "failed" or "skipped".

    Attributes:
        name: its id, below the distribution's folder of tests.
        original: with the framework's own splitters.
        drop_in: with ours in their place.
        pared: with ours, of which the metadata and ids that they add were taken away.
        answered_by: the strategies that answered it; none where it calls no splitter.
        said: the first line of what it failed with.
    """

    name: str
    original: str
    drop_in: str
    pared: str
    answered_by: tuple[str, ...]
    said: str

    @property
    def fails(self) -> bool:
        """Whether it passes with the original, and not with ours."""
        return self.original == "passed" and self.drop_in != "passed"


def run_framework(framework: str, sdists: Path | None = None) -> list[Outcome]:
    """Run a framework's tests; none where its source distribution ships none.

    Args:
        framework: "langchain", "llamaindex" or "haystack".
        sdists: a folder with the source distributions of the installed versions; without one they are downloaded.

    Raises:
        RuntimeError: pytest came to no end.
    """
    package = PACKAGES[framework]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        archive = find(package, sdists) if sdists else None
        files = unpack_tests(archive or fetch(package, folder), folder)
        if not files:
            return []
        runs = {mode: _outcomes(folder, files, mode) for mode in MODES}
    return [_test(name, runs) for name in sorted(set().union(*runs.values()))]


def _outcomes(folder: Path, files: list[Path], mode: str) -> dict[str, Any]:
    record, settings = folder / f"{mode}.json", folder / "pytest.ini"
    settings.write_text("[pytest]\n", encoding="utf-8")
    where = os.pathsep.join(filter(None, [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = _sentences() | os.environ | OFFLINE
    environment |= {"PYTHONPATH": where, "PEERS_MODE": mode, "PEERS_RECORD": str(record)}
    options = ["-c", str(settings), "--rootdir", str(folder), "-q", "-p", "no:cacheprovider", "--import-mode=importlib"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "integration_tests.peers.plugin", *options, *map(str, files)],
        capture_output=True, cwd=folder, env=environment, text=True, check=False,
    )  # fmt: skip
    if done.returncode not in (0, 1) or not record.exists():
        raise RuntimeError(f"pytest ended with {done.returncode}:\n{(done.stdout + done.stderr)[-4000:]}")
    found: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
    return found


def _sentences() -> dict[str, str]:
    """Where nltk finds the data of its sentences, which ship with LlamaIndex."""
    found = find_spec("llama_index")
    folders = (
        [Path(each, "core/_static/nltk_cache") for each in (found.submodule_search_locations or ())] if found else []
    )
    return {"NLTK_DATA": os.pathsep.join(map(str, folders))} if folders else {}


def _test(name: str, runs: Mapping[str, Mapping[str, Any]]) -> Outcome:
    found = {mode: runs[mode].get(name, {"outcome": "absent", "answered_by": [], "said": ""}) for mode in MODES}
    return Outcome(
        name=name,
        **{mode: found[mode]["outcome"] for mode in MODES},
        answered_by=tuple(found["drop_in"]["answered_by"]),
        said=found["drop_in"]["said"],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--framework", choices=PACKAGES, action="append", help="leave out for all")
    parser.add_argument("--sdists", type=Path, help="a folder that holds the source distributions")
    arguments = parser.parse_args()
    for framework in arguments.framework or PACKAGES:
        report(framework, run_framework(framework, arguments.sdists))


def report(framework: str, tests: list[Outcome]) -> None:
    """Print what became of them."""
    if not tests:
        print(f"{framework}: the source distribution of {PACKAGES[framework]} ships no tests")
        return
    ran = [test for test in tests if test.original == "passed"]
    reached = [test for test in ran if test.answered_by]
    failed = [test for test in ran if test.fails]
    only_by_additions = sum(test.pared == "passed" for test in failed)
    strategies = Counter(each for test in reached for each in test.answered_by)
    print(f"{framework}: {len(tests)} tests, of which {len(ran)} pass here with the originals and {len(reached)} split")
    print("  answered by " + ", ".join(f"{name} {count}" for name, count in strategies.most_common()))
    print(f"  {len(failed)} fail with ours, {only_by_additions} of them only by what our documents have besides")
    for test in failed:
        how = "only by what is added" if test.pared == "passed" else "also without what is added"
        known = "known" if test.name in KNOWN[framework] else "NOT KNOWN"
        print(f"  FAILED {test.name}\n    {how}; {known}\n    {test.said}")
    for test in tests:
        if test.original == "failed":
            print(f"  fails with the original, too: {test.name}")


if __name__ == "__main__":
    main()
