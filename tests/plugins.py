"""The strategy and the retriever of CONTRIBUTING.md as installed packages: modules, and the metadata of pip."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest
from chunkcore.chunkers import chunkers
from chunkcore.concurrency import python_command
from chunkcore.retrieval import retrievers

__all__ = ["PROGRAM", "RETRIEVER", "Installed", "install", "on_path"]

PAGE = (Path(__file__).resolve().parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
PROGRAM, RETRIEVER, *_ = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
ENTRIES = re.findall(r'^\[project\.entry-points\."(.+)"\]\n(\w+) = "(.+)"$', PAGE, flags=re.MULTILINE)
GROUP, NAME, PLACE = ENTRIES[0]

_CHUNKCORE = "import runpy; runpy.run_module('chunkcore', run_name='__main__', alter_sys=True)"


def install(folder: Path, package: str, group: str, entry: str, **modules: str) -> None:
    """Install a package of these modules, which offers one thing."""
    for name, program in modules.items():
        (folder / f"{name}.py").write_text(program, encoding="utf-8")
    metadata = folder / f"{package.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{entry}\n", encoding="utf-8")


@dataclass(frozen=True)
class Installed:
    """A folder of packages."""

    folder: Path

    def offer(self, name: str = NAME, *, package: str = "my-chunkers", leads_to: str = PLACE) -> None:
        """Install a package with the page's module that offers a strategy."""
        modules = self.folder / "my_chunkers"
        modules.mkdir(exist_ok=True)
        (modules / "__init__.py").touch()
        (modules / "paragraph.py").write_text(PROGRAM, encoding="utf-8")
        install(self.folder, package, GROUP, f"{name} = {leads_to}")

    def offer_retriever(self) -> None:
        """Install a package with the page's module that offers a retriever."""
        group, name, place = ENTRIES[1]
        module = place.partition(":")[0].rpartition(".")[2]
        entry = f"{name} = {place.rpartition('.')[2]}"
        install(self.folder, "my-retrievers", group, entry, **{module: RETRIEVER})

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The command line, in a process that finds the packages."""
        return subprocess.run(
            python_command(_CHUNKCORE, *arguments), capture_output=True, cwd=self.folder, text=True, check=False
        )


@contextmanager
def on_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installed]:
    """A folder of packages that this process finds; what they register is forgotten in the end."""
    monkeypatch.syspath_prepend(str(folder))
    for name in ("my_chunkers", "my_chunkers.paragraph"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with patch.dict(chunkers.entries), patch.dict(retrievers.entries):
        yield Installed(folder)
