"""Out of memory is one sentence with exit status 1: a real process with a limit of address space."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.places import ROOT

PROGRAM = """
import resource, sys
from chunkcore.cli import main
import numpy, tiktoken  # else the packages' own libraries find no room

used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), used + (64 << 20)))
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of address space is Linux'")
@pytest.mark.parametrize("command", ["search", "chunk"])
def test_without_memory_a_command_ends_in_one_sentence(tmp_path: Path, command: str) -> None:
    with (tmp_path / "tea.txt").open("w") as file:
        for _ in range(40):
            file.write("tea is hot " * 100_000)
    more: dict[str, list[object]] = {
        "search": ["tea"],
        "chunk": ["-o", tmp_path / "out", "-s", "recursive:size=200,counter=characters"],
    }
    arguments = [*command.split(), tmp_path / "tea.txt", *more[command]]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        cwd=ROOT,
        env={"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PATH": "/usr/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "memory" in done.stderr.splitlines()[-1]
