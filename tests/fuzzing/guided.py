"""Coverage-guided: inputs that reach code which none reached before are kept and mutated (atheris, libFuzzer).

    python -m tests.fuzzing.guided --seconds 180              each target that is worth it, in a process of its own
    python -m tests.fuzzing.guided --seconds 180 --only html  those with this in their names

The targets are the same as those of ``make fuzz``: Hypothesis reads what libFuzzer mutates as its own choices.
"""

from __future__ import annotations

import argparse
import mmap
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import HealthCheck, settings

from tests.fuzzing.running import property_of
from tests.fuzzing.targets import ROOMS, Target, load_targets
from tests.results import keep_result

# What is instrumented: ours, and the parsers in Python that it hands texts to.
_FOLLOWED = ["chunkcore", "chunkadapters", "markdown_it", "justhtml", "zipfile"]
_LONGEST = 600  # bytes of an input: some 100 choices
_BEGINNINGS = 50  # random inputs that mutation begins with
_COVERED = re.compile(rb"cov: (\d+)")


def main(arguments: list[str] | None = None) -> int:
    """Run; 1 where something failed, 3 where atheris is not installed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing.guided", description=__doc__)
    parser.add_argument("--seconds", type=int, default=180, help="of each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=[], help="parts of the names of targets")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if find_spec("atheris") is None:
        print("atheris is not installed (pip install atheris; it is made for Linux and macOS): nothing is done")
        return 3
    if asked.inside:
        _fuzz(asked.inside, asked.seconds, asked.seed)
    names = [
        name
        for name, each in load_targets().items()
        if each.guided and (not asked.only or any(part in name for part in asked.only))
    ]
    if not names:
        parser.error(f"no target that coverage leads has {' or '.join(asked.only)} in its name")
    began = time.monotonic()
    outcomes = [_run(name, asked.seconds, asked.seed) for name in names]
    total, failures = sum(cases for cases, _ in outcomes), sum(failed for _, failed in outcomes)
    print(
        f"{total:,} generated cases of {len(names)} targets checked by coverage, {failures} failures, seed {asked.seed}"
    )
    minutes = round((time.monotonic() - began) / 60, 1)
    keep_result(f"led by coverage ({len(names)} targets)", asked.seed, total, minutes, failures)
    return 1 if failures else 0


def _run(name: str, seconds: int, seed: int) -> tuple[int, bool]:
    """A target in a process of its own: how many cases there were, and whether it failed; a line of both."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "cases").write_bytes(bytes(8))
        done = subprocess.run(
            [sys.executable, "-m", "tests.fuzzing.guided", "--inside", name, f"--seconds={seconds}", f"--seed={seed}"],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "CHUNKCORE_FUZZING": folder},
            capture_output=True,
            check=False,
        )
        cases = int.from_bytes((Path(folder) / "cases").read_bytes(), "little")
        kept = len(list((Path(folder) / "corpus").glob("*")))
    covered = [int(each) for each in _COVERED.findall(done.stderr)] or [0]
    print(
        f"{name}: {cases:,} cases, {kept:,} inputs kept, places reached: {covered[0]:,} to {covered[-1]:,}", flush=True
    )
    if done.returncode:
        print(f"=== {name} failed\n{done.stderr.decode('utf-8', 'replace')[-6000:]}", flush=True)
    return cases, bool(done.returncode)


def _fuzz(name: str, seconds: int, seed: int) -> None:
    """Fuzz a target until the time is over; does not come back."""
    import atheris

    folder = Path(os.environ["CHUNKCORE_FUZZING"])
    inputs = _random_inputs(seed)
    with atheris.instrument_imports(include=_FOLLOWED):
        target = load_targets(tuple(room for room in ROOMS if room.startswith("tests.")))[name]
        warm = _property(target, lambda: None)
        for data in inputs:  # parsers are imported where they are first needed
            warm(data)
    passed = 0
    # libFuzzer ends the process itself, without a word to Python.
    with (folder / "cases").open("r+b") as file:
        tally = mmap.mmap(file.fileno(), 8)

    def count() -> None:
        nonlocal passed
        passed += 1
        tally[:] = passed.to_bytes(8, "little")

    corpus = folder / "corpus"
    corpus.mkdir()
    for number, data in enumerate(inputs):
        (corpus / f"random-{number}").write_bytes(data)
    options = [f"-max_total_time={seconds}", f"-seed={seed}", f"-max_len={_LONGEST}", "-timeout=120", "-len_control=0"]
    atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={folder}/", str(corpus)], _property(target, count))
    atheris.Fuzz()


def _random_inputs(seed: int) -> list[bytes]:
    """What mutation begins with."""
    chance = Random(seed)
    return [chance.randbytes(chance.randint(20, _LONGEST)) for _ in range(_BEGINNINGS)]


def _property(target: Target, after: Callable[[], None]) -> Callable[[bytes], object]:
    """The target as a function of bytes."""
    tried: Any = settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))(
        property_of(_telling(target), after)
    )
    return tried.hypothesis.fuzz_one_input


def _telling(target: Target) -> Target:
    """The target, whose failures tell what they failed at: nothing is shrunk here."""

    def check(**arguments: Any) -> None:
        try:
            target.check(**arguments)
        except Exception:
            print(f"{target.name}(**{arguments!a})", file=sys.stderr)
            raise

    return Target(target.room, target.name, check, target.arguments)


if __name__ == "__main__":
    sys.exit(main())
