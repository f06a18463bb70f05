"""A command that is run in a stranger's folder runs no module of that folder, in no process that it starts."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path
from urllib.request import urlopen

import chunkcore
import pytest
from chunkcore.concurrency import PROCESS_FOLDER, python_command

from tests.processes import started, wait_for

SOURCE = Path(chunkcore.__file__).parents[1]
SCRIPT = "import sys\nfrom chunkadapters._command import main\nsys.exit(main())\n"  # as pip installs it
LOADED = "import sys; print(*{name.partition('.')[0] for name in sys.modules})"


def environment(folder: Path) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONSAFEPATH"}
    return kept | {"PYTHONPATH": str(SOURCE), "XDG_CACHE_HOME": str(folder / "cache")}


@pytest.fixture(scope="module")
def before_any_module(tmp_path_factory) -> set[str]:
    """What ``python -m`` imports before the module that it runs."""
    folder = tmp_path_factory.mktemp("plain")
    (folder / "plain.py").write_text(LOADED)
    command = [sys.executable, "-m", "plain"]
    done = subprocess.run(command, cwd=folder, env=environment(folder), capture_output=True, text=True, check=True)
    return {*done.stdout.split(), "runpy", "pkgutil"}


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder with an e-mail, a text, and a module of each name of the standard library and of what is installed."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in {*sys.stdlib_module_names, *packages_distributions(), "chunkcore", "chunkadapters", "sitecustomize"}:
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write('{name} ')")
    (folder / "tea.eml").write_text("Subject: Tea\n\nTea is hot. It is black.")
    (folder / "pump.txt").write_text("The pump is primed. It runs.")
    (tmp_path / "q.jsonl").write_text('{"question": "What does it?", "evidence": ["It runs."]}')
    return folder


def ran(docs: Path) -> str:
    file = docs.parent / "ran"
    return file.read_text() if file.exists() else ""


_COMPARE = "compare pump.txt --questions ../q.jsonl -r bm25 -k 1 --no-cache -o ../r"
COMMANDS = {
    "chunk": ["chunk", "tea.eml", "pump.txt", "-s", "fixed_token:size=9", "-o", "../out.jsonl"],
    "index": ["index", "tea.eml", "-o", "../index"],
    "search": ["search", "tea.eml", "tea", "--no-cache"],
    "serve": ["serve", "tea.eml", "--no-cache"],
    "compare": _COMPARE.split(),
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("begin", ["script", "module"])
def test_a_command_runs_no_module_of_the_current_folder(docs, tmp_path, before_any_module, begin, name):
    command = [sys.executable, "-m", "chunkcore"]
    if begin == "script":
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "chunkcore").write_text(SCRIPT)
        command[1:] = [str(tmp_path / "bin" / "chunkcore")]
    else:  # these are Python's to import, before any line of ours
        for module in (*before_any_module, "chunkcore"):
            (docs / f"{module}.py").unlink(missing_ok=True)
    options = {"cwd": docs, "env": environment(tmp_path), "stdin": subprocess.DEVNULL, "timeout": 200}
    done = subprocess.run([*command, *COMMANDS[name]], capture_output=True, text=True, **options)
    assert (ran(docs), done.returncode) == ("", 0), done.stderr


SPELLINGS = {
    "-umchunkcore": 0,
    "-Bum chunkcore": 0,
    "-Wignore -X utf8 -m chunkcore": 0,
    "-Wm -mchunkcore": 0,
    "-m chunkcore.cli": 1,
    "-mchunkcore.__main__": 0,
    "-m chunkcore.reading.base": 0,
    "-m chunkadapters._command": 0,
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_spelling_of_module_runs_a_module_of_the_current_folder(docs, tmp_path, before_any_module, spelling):
    for module in (*before_any_module, "chunkcore", "chunkadapters"):
        (docs / f"{module}.py").unlink(missing_ok=True)
    command = [sys.executable, *spelling.split(), "chunk", "pump.txt"]
    done = subprocess.run(command, cwd=docs, env=environment(tmp_path), capture_output=True, text=True)
    assert (ran(docs), done.returncode) == ("", SPELLINGS[spelling]), done.stderr


@pytest.mark.skipif(sys.version_info < (3, 11), reason="PYTHONSAFEPATH")
@pytest.mark.parametrize(
    "options", [["-c", "import random"], ["-m", "tests.processes"], ["-m", "tests.faults.program"]]
)
def test_a_process_that_a_test_starts_runs_no_module_of_its_folder(docs, options):
    subprocess.run([sys.executable, *options], cwd=docs, capture_output=True, check=False)
    assert ran(docs) == ""


@pytest.mark.parametrize("options", [["-c", "import chunkcore.text, mine"], ["-m", "chunkcore_user.tool"]])
def test_programs_of_a_user_import_their_own_modules(tmp_path, options):
    (tmp_path / "mine.py").touch()
    (tmp_path / "chunkcore_user").mkdir()
    (tmp_path / "chunkcore_user" / "__init__.py").write_text("import chunkcore.text")
    (tmp_path / "chunkcore_user" / "tool.py").write_text("import mine")
    subprocess.run([sys.executable, *options], cwd=tmp_path, env=environment(tmp_path), check=True)


def test_the_label_server_runs_no_module_of_the_current_folder(docs, tmp_path, before_any_module):
    for module in (*before_any_module, "chunkcore"):
        (docs / f"{module}.py").unlink(missing_ok=True)
    command = [sys.executable, "-u", "-m", "chunkcore", "questions", "label", "tea.eml", "--no-browser"]
    command += ["-o", "../q.jsonl"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with started(command, cwd=docs, env=environment(tmp_path), **pipes) as process:
        address = process.stdout.readline().split()[-1]
        with urlopen(address) as page:
            assert page.status == 200
    assert ran(docs) == ""


def test_processes_start_in_pythons_folder_with_no_current_folder_on_the_path(docs, monkeypatch):
    monkeypatch.chdir(docs)
    monkeypatch.setattr(sys, "path", ["", str(docs), *sys.path])
    program = "import os, sys, json, random; print(os.path.realpath(os.getcwd())); print(*sys.path, sep='\\n')"
    done = subprocess.run(python_command(program), cwd=PROCESS_FOLDER, capture_output=True, text=True, check=True)
    folder, *path = done.stdout.splitlines()
    assert folder == os.path.realpath(PROCESS_FOLDER)
    assert str(docs) not in path
    assert str(SOURCE) in path
    assert not Path(folder).is_relative_to(docs.parent)
    assert ran(docs) == ""


@pytest.mark.skipif(not Path("/proc").exists(), reason="processes are found in /proc")
def test_a_worker_ends_with_the_process_that_started_it():
    program = """
import time
from chunkcore.concurrency import Worker
print(Worker("from chunkcore.reading.base import serve; serve()", {}).process.pid, flush=True)
time.sleep(60)
"""
    with started(python_command(program), stdout=subprocess.PIPE, text=True) as process:
        pid = int(process.stdout.readline())
    wait_for(lambda: not Path(f"/proc/{pid}/cmdline").exists() or not Path(f"/proc/{pid}/cmdline").read_bytes())
