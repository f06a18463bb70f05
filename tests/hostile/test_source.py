"""What the package's own source never does: unpickle, evaluate, load a model with code, open an address unchecked."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
FILES = sorted(SOURCE.rglob("*.py"))

MODULES = {
    *("pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "diskcache", "xmlrpc", "telnetlib")
}
CALLS = {"eval", "exec", "compile", "__import__", "input"}  # by their bare names
METHODS = {
    *("yaml.load", "yaml.unsafe_load", "yaml.full_load", "yaml.Loader", "yaml.UnsafeLoader", "yaml.FullLoader"),
    *("os.system", "os.popen", "subprocess.run", "subprocess.Popen", "subprocess.call", "subprocess.check_output"),
    *("ssl._create_unverified_context", "tempfile.mktemp", "np.load", "numpy.load", "torch.load", "pd.read_pickle"),
    *("urllib.request.urlopen", "urlopen", "requests.get", "zipfile.extractall", "tarfile.open", "pty.spawn"),
}


def dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def forbidden(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name.partition(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom):
            if (node.module or "").partition(".")[0] in MODULES:
                yield str(node.module)
        elif isinstance(node, ast.Call):
            name = dotted(node.func)
            if name in CALLS | METHODS or name.endswith((".extractall", ".unsafe_load", ".read_pickle")):
                yield name
            for keyword in node.keywords:
                constant = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
                wanted = {"allow_pickle": False, "trust_remote_code": False, "verify": True, "shell": False}
                if keyword.arg in wanted and constant is not wanted[keyword.arg]:
                    yield f"{name}({keyword.arg}={ast.unparse(keyword.value)})"
        elif isinstance(node, ast.Attribute) and dotted(node) in METHODS:
            yield dotted(node)


def test_there_is_source_to_look_at() -> None:
    assert len(FILES) > 100


@pytest.mark.parametrize("statement", ["import pickle", "from joblib import load", "eval('1')", "torch.load('x')"])
def test_what_is_forbidden_is_found(statement: str) -> None:
    assert list(forbidden(ast.parse(statement)))


def test_nothing_is_unpickled_evaluated_or_run() -> None:
    found = {
        f"{file.relative_to(SOURCE)}: {each}"
        for file in FILES
        for each in forbidden(ast.parse(file.read_text("utf-8"), str(file)))
    }
    # Processes run our own modules, and get files' contents as JSON.
    assert found == {"chunkcore/concurrency.py: subprocess.Popen"}
