"""The frameworks' source distributions, and the tests that they ship."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path, PurePosixPath

__all__ = ["PACKAGES", "fetch", "find", "unpack_tests"]

PACKAGES = {
    "langchain": "langchain-text-splitters",
    "llamaindex": "llama-index-core",
    "haystack": "haystack-ai",
}


def fetch(package: str, folder: Path) -> Path:
    """Download the source distribution of the version that is installed; pip may fetch its build tool, too."""
    wanted = f"{package}=={version(package)}"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
    subprocess.run([*pip, f"--no-binary={package}", "--dest", str(folder), wanted], check=True)
    found = find(package, folder)
    if found is None:
        raise FileNotFoundError(f"pip downloaded no source distribution of {wanted} to {folder}")
    return found


def find(package: str, folder: Path) -> Path | None:
    """The source distribution of the installed version in a folder, if it is there."""
    name = package.replace("-", "_")
    return next(iter(folder.glob(f"{name}-{version(package)}.tar.gz")), None)


def unpack_tests(archive: Path, folder: Path) -> list[Path]:
    """Unpack the folder of tests alone, so that the installed package is what they test; the test files in it.

    Only files and folders are taken, and nothing is written outside `folder`.

    Raises:
        ValueError: a member is a link, or reaches outside.
    """
    with tarfile.open(archive) as opened:
        for member in opened:
            inside = PurePosixPath(*PurePosixPath(member.name).parts[1:])  # without package-version/
            if inside.parts[:1] not in (("tests",), ("test",)) or member.isdir():
                continue
            # tarfile's own filter for data is not in every Python 3.11.
            if not member.isreg() or ".." in inside.parts:
                raise ValueError(f"{archive.name}: {member.name} is no plain file inside the folder of tests")
            target = folder / inside
            target.parent.mkdir(parents=True, exist_ok=True)
            content = opened.extractfile(member)
            target.write_bytes(content.read() if content else b"")
    return sorted(path for path in folder.rglob("test_*.py") if path.is_file())
