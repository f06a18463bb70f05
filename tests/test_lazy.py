"""Imports that wait."""

from __future__ import annotations

import ast
import sys
from importlib import invalidate_caches
from pathlib import Path

import chunkcore
import pytest
from chunkcore.errors import MissingExtraError
from chunkcore.lazy import needed


@pytest.fixture
def brought(tmp_path, monkeypatch):
    """Write a package's source, and let it be imported."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(source: str, name: str = "brought_for_a_test") -> str:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(source)
        invalidate_caches()
        return name

    yield write
    for each in [each for each in sys.modules if each.startswith("brought_for_a_test")]:
        del sys.modules[each]


@pytest.mark.parametrize("module", ["nowhere_at_all", "nowhere_at_all.within"])
def test_a_package_that_is_not_installed_is_named_with_its_extra(module):
    with pytest.raises(MissingExtraError) as caught:
        needed(module, "report", "write a page")
    install = 'pip install "chunkadapters[report]" (in a clone: ".[report]")'
    assert str(caught.value) == f"nowhere_at_all is needed to write a page, and it is not installed: {install}"
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import nowhere_at_all", "No module named 'nowhere_at_all'"),
        ("import brought_for_a_test.compiled", "No module named 'brought_for_a_test.compiled'"),
        ("raise ImportError('libgomp.so.1:\\n cannot open it')", "libgomp.so.1: cannot open it"),
    ],
)
def test_a_package_that_is_there_and_cannot_be_imported_is_not_told_to_be_missing(brought, source, reason):
    with pytest.raises(MissingExtraError) as caught:
        needed(brought(source), "models", "embed text", "brought")
    install = 'pip install "chunkadapters[models]" (in a clone: ".[models]")'
    assert str(caught.value) == f"brought is needed to embed text, and its import failed ({reason}): {install}"
    assert type(caught.value.__cause__) in (ImportError, ModuleNotFoundError)


def test_a_part_that_an_old_package_lacks_is_not_installed(brought):
    with pytest.raises(MissingExtraError, match=r"brought_for_a_test is needed .* it is not installed"):
        needed(f"{brought('')}.newer", "ann", "search")


def test_what_a_package_imports_on_first_use_is_what_a_type_checker_sees():
    source = Path(chunkcore.__file__).parents[1]
    for file in source.rglob("__init__.py"):
        text = file.read_text(encoding="utf-8")
        if "on_first_use(" not in text:
            continue
        seen: dict[str, set[str]] = {}
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                for line in node.body:
                    seen.setdefault(line.module, set()).update(name.asname for name in line.names)
            elif isinstance(node, ast.Expr) and ast.unparse(node).startswith("on_first_use("):
                table = ast.literal_eval(node.value.args[1])
        assert {module: set(names.split()) for module, names in table.items()} == seen, file
