"""Disks to be full or read-only, and programs that are run on them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# The command line with a model that needs no weights.
COMMAND = """
import sys
import chunkcore.models.loading
from chunkcore.cli import main
from tests.fakes import FakeEmbedder

chunkcore.models.get_embedder = chunkcore.models.loading.get_embedder = lambda name: FakeEmbedder()
sys.exit(main(sys.argv[1:]))
"""


def command(*arguments: object) -> list[str]:
    """``chunkcore`` with these arguments, as a process of its own to be started in `ROOT`."""
    return [sys.executable, "-c", COMMAND, *map(str, arguments)]


class Disk:
    """A file system of one megabyte, in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self, *, leave: int = 0) -> None:
        """Leave no more than so many bytes."""
        target = os.open(self.path / "filling", os.O_WRONLY | os.O_CREAT)
        try:
            while True:
                os.write(target, bytes(4096))
        except OSError:
            if leave:
                os.ftruncate(target, os.fstat(target).st_size // 4096 * 4096 - -(-leave // 4096) * 4096)
        finally:
            os.close(target)

    def free(self) -> None:
        """Take away what fills it."""
        (self.path / "filling").unlink()

    def remount(self, how: str) -> None:
        """ "ro" or "rw"."""
        subprocess.run(["mount", "-o", f"remount,{how}", str(self.path)], check=True)


@contextmanager
def mounted(path: Path) -> Iterator[Disk]:
    """A `Disk` at a new folder; the test is skipped where this user may not have one."""
    if sys.platform != "linux" or shutil.which("mount") is None:
        pytest.skip("this system has no mount for file systems in memory")
    path.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(path)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"this user may not mount a file system in memory: {done.stderr.strip()}")
    try:
        yield Disk(path)
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with mounted(tmp_path / "disk") as made:
        yield made
