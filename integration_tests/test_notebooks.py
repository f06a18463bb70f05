"""The notebooks of the documentation run, and show what is stored in them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat and nbclient run the notebooks: the extra dev")
nbclient = pytest.importorskip("nbclient")
jupyter_client = pytest.importorskip("jupyter_client")
pytest.importorskip("ipykernel")
pytest.importorskip("pandas")

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "docs" / "notebooks").glob("*.ipynb"))
NEEDS = {"langchain": "langchain_text_splitters", "llamaindex": "llama_index.core", "haystack": "haystack"}


def kinds(notebook) -> list[list[str]]:
    """What each code cell shows, warnings aside."""
    cells = [each for each in notebook.cells if each.cell_type == "code"]
    return [[kind for out in each.outputs if "data" in out for kind in sorted(out.data)] for each in cells]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_holds(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(NEEDS[path.stem])
    stored, run = (nbformat.read(path, as_version=4) for _ in range(2))
    assert path.stat().st_size < 60_000
    assert not re.search(r"/(home|root|work|tmp)/", path.read_text(encoding="utf-8"))
    assert all(each.execution_count for each in stored.cells if each.cell_type == "code")
    with TemporaryDirectory() as folder:  # of a short name, for sockets: another program could take a port meanwhile
        monkeypatch.setenv("JUPYTER_RUNTIME_DIR", folder)
        transport = "tcp" if sys.platform == "win32" else "ipc"
        kernel = jupyter_client.AsyncKernelManager(kernel_name="python3", transport=transport)
        nbclient.NotebookClient(run, timeout=600, startup_timeout=300, km=kernel).execute()
    assert kinds(run) == kinds(stored)
    assert ["text/html", "text/plain"] in kinds(run)
