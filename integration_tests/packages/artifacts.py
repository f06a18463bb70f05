"""What is released: built as a release is, and looked into."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

__all__ = ["ROOT", "Artifacts", "build", "problems"]

ROOT = Path(__file__).resolve().parents[2]
# Folders of a wheel: the packages and its own metadata, nothing else.
PACKAGES = ("chunkcore", "chunkadapters", "haystack_integrations")
# What the library reads at run time beside its modules, or what tools read of it.
NEEDED = (
    "chunkcore/py.typed",
    "chunkadapters/py.typed",
    "chunkcore/datasets/lochmere/questions.jsonl",
    "chunkcore/datasets/lochmere/documents/handbook-ja.txt",
    "chunkcore/report/page.html.jinja",
    "chunkcore/report/page.css",
    "chunkcore/report/page.js",
)


class Artifacts:
    """The wheel and the source distribution in a folder."""

    def __init__(self, folder: Path) -> None:
        (self.wheel,) = folder.glob("*.whl")
        (self.sdist,) = folder.glob("*.tar.gz")

    def metadata(self) -> Message:
        """What the wheel tells of itself."""
        with zipfile.ZipFile(self.wheel) as opened:
            (file,) = (name for name in opened.namelist() if name.endswith(".dist-info/METADATA"))
            return HeaderParser().parsestr(opened.read(file).decode("utf-8"))

    def extras(self) -> list[str]:
        return self.metadata().get_all("Provides-Extra", [])


def build(folder: Path) -> Artifacts:
    """Build the source distribution, and from it the wheel, each in an environment of its own."""
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], check=True)
    return Artifacts(folder)


def problems(artifacts: Artifacts) -> list[str]:
    """What is wrong with them; twine's opinion of the metadata is the first."""
    command = [sys.executable, "-m", "twine", "check", "--strict", str(artifacts.wheel), str(artifacts.sdist)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    faults = [f"twine check: {checked.stdout}{checked.stderr}"] if checked.returncode else []
    return [*faults, *_wheel(artifacts.wheel), *_sdist(artifacts.sdist)]


def _wheel(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as opened:
        names = {name for name in opened.namelist() if not name.endswith("/")}
    info = next(name.split("/")[0] for name in names if name.endswith(".dist-info/METADATA"))
    typed = {f"{Path(name).parent.as_posix()}/py.typed" for name in names if _is_integration(name)}
    faults = [f"the wheel lacks {name}" for name in sorted({*NEEDED, f"{info}/licenses/LICENSE", *typed} - names)]
    faults += [
        f"the wheel holds {name}, which is no part of the library"
        for name in sorted(names)
        if name.split("/")[0] not in (*PACKAGES, info) or "test" in Path(name).name or "__pycache__" in name
    ]
    faults += [f"the wheel lacks {name}, which the checkout has" for name in sorted(_sources() - names)]
    return faults


def _is_integration(name: str) -> bool:
    return name.startswith("haystack_integrations/") and name.endswith("/chunkadapters.py")


def _sources() -> set[str]:
    """What git tracks under src, which is what the wheel is made of."""
    listed = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name.removeprefix("src/") for name in listed.stdout.splitlines()}


def _sdist(sdist: Path) -> list[str]:
    with tarfile.open(sdist) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    needed = {"LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "pyproject.toml", "tests/conftest.py"}
    return [f"the source distribution lacks {name}" for name in sorted(needed - names)]
