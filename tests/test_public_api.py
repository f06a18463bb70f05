"""The public names: documented, complete, and cheap to import."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import chunkcore
import pytest
from docs.making.site import listed

ROOT = Path(__file__).resolve().parents[1]

# What must not come along: frameworks, models, and what only the command line or the report needs.
NAMES = (
    "haystack jinja2 justhtml langchain_core langchain_text_splitters llama_index openai networkx openvino "
    "rich safetensors scipy sklearn sentence_transformers tokenizers torch "
    "tree_sitter transformers typer"
)
HEAVY = NAMES.split()


def test_the_api_page_lists_every_public_name_once_and_no_other() -> None:
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `chunkcore\.\w+` \| (.*) \|$", page, flags=re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(chunkcore.__all__), "python -m docs.making"


def test_the_face_is_small_and_says_its_version() -> None:
    assert len(chunkcore.__all__) <= 45
    assert re.fullmatch(r"\d+\.\d+\.\d+", chunkcore.__version__)


def test_every_public_name_is_there_and_has_a_docstring() -> None:
    for name in chunkcore.__all__:
        assert getattr(chunkcore, name).__doc__, name


REGISTRIES = {"chunkers.base": "chunkers", "evaluation.measures": "measures", "models.endpoint": "llms"}
REGISTRIES |= {"models.loading": "embedders", "retrieval.base": "retrievers", "retrieval.stage": "stages"}


@pytest.mark.parametrize("module", REGISTRIES)
def test_a_registry_knows_its_names_before_anything_else_is_imported(module: str) -> None:
    name = REGISTRIES[module]
    program = f"from chunkcore.{module} import {name}; print([each for each in {name} if {name}.find(each)])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    whole = f"from chunkcore import *; from chunkcore.{module} import {name}; print([*{name}])"
    known = subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, check=True)
    assert done.stdout == known.stdout


FACES = {
    "chunkcore/__init__": "numpy",
    "chunkadapters/langchain/__init__": "langchain_text_splitters",
    "chunkadapters/llamaindex/__init__": "llama_index",
    "chunkadapters/haystack/__init__": "haystack",
}


def test_type_checkers_read_the_types_of_every_package() -> None:
    packages = ["chunkcore", "chunkadapters", *(ROOT / "src").glob("haystack_integrations/components/*")]
    assert len(packages) > 5
    assert [each for each in packages if not (ROOT / "src" / str(each) / "py.typed").exists()] == []


@pytest.mark.parametrize("file", FACES)
def test_a_package_imports_what_is_used_and_a_type_checker_sees_its_names(file: str) -> None:
    pytest.importorskip(FACES[file], reason=f"{FACES[file]} is not installed")
    name = file.removesuffix("/__init__").replace("/", ".")
    tree = ast.parse((ROOT / "src" / f"{file}.py").read_text(encoding="utf-8"))
    branches = [branch for branch in tree.body if isinstance(branch, ast.If)]
    nodes = [node for branch in branches for node in branch.body if isinstance(node, ast.ImportFrom)]
    stated = {each.name: node.module for node in nodes for each in node.names}
    module = import_module(name)
    assert sorted(stated) == sorted(module.__all__)
    for each, home in stated.items():
        assert getattr(module, each) is getattr(import_module(str(home)), each)
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match="has no attribute 'Chunky'"):
        getattr(module, "Chunky")  # noqa: B009
    program = f"import sys, {name}; print([each for each in sys.modules if each.startswith('chunkcore.chunkers')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_importing_chunkcore_imports_no_framework_and_no_model() -> None:
    program = f"import sys\nfrom chunkcore import *\nprint(sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def _private(program: str) -> Iterator[str]:
    """The names of chunkcore that a program imports though their module does not export or define them."""
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.Import):  # whose attributes nobody checks
            yield from (each.name for each in node.names if each.name.split(".")[0] == "chunkcore")
        elif isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "chunkcore":
            module = import_module(str(node.module))
            public = getattr(module, "__all__", None) or listed(ast.parse(inspect.getsource(module)))
            yield from (f"{node.module}.{each.name}" for each in node.names if each.name not in public)


def test_adapters_import_only_public_names_of_chunkcore() -> None:
    """Import contracts see modules, not names."""
    assert list(_private("from chunkcore.spans import _pairs, union\nimport chunkcore.files")) == [
        "chunkcore.spans._pairs",
        "chunkcore.files",
    ]
    paths = [
        path for room in ("chunkadapters", "haystack_integrations") for path in (ROOT / "src" / room).rglob("*.py")
    ]
    found = {str(path): names for path in paths if (names := list(_private(path.read_text(encoding="utf-8"))))}
    assert (len(paths) > 20, found) == (True, {})


def test_every_module_imports_without_frameworks_and_models() -> None:
    """What is optional is imported where it is used: hiding it breaks no module of the core."""
    program = f"""
import importlib, pkgutil, sys
for name in {HEAVY!r}:
    if name not in ("typer", "rich"):
        sys.modules[name] = None
import chunkcore
for module in pkgutil.walk_packages(chunkcore.__path__, "chunkcore."):
    if module.name != "chunkcore.__main__":
        importlib.import_module(module.name)
print("fine")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "fine", done.stderr


def test_no_public_signature_changes_unseen() -> None:
    signatures = pytest.importorskip("tests.typing.signatures", reason="griffelib is not installed")
    written = signatures.FILE.read_text(encoding="utf-8").splitlines()
    assert list(signatures.lines()) == written, "python -m tests.typing.signatures"
