"""Break a module on purpose, a little at a time: which mutants does no test notice?

    make mutants PARTS="packing scoring" MOST=30

Mutants are mutmut's: of functions without decorators. Left out are those that almost any test notices (a value
replaced by None) and those that no user does (in what is raised, string literals, `dtype=`, `strict=`).
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Each part: its modules under src/, and the tests that are to notice.
PARTS = {
    "packing": (
        "chunkcore: spans packing; chunkcore/chunkers: fixed_sentences fixed_token overlap recursive sentence",
        "spans packing recursive sentence_chunkers fixed_token worked_examples",
    ),
    "configuration": ("chunkcore/chunkers: configuration", "chunker_configuration configuration_files embedder_sizes"),
    "alignment": ("chunkcore/evaluation: alignment", "alignment"),
    "scoring": ("chunkcore/evaluation: counting scoring measures/retrieval", "scoring measures budget"),
    "assembly": ("chunkcore/retrieval: assembly", "assembly stages"),
    "base": ("chunkcore/chunkers: base", "chunker_configuration dbscan llm_chunkers markdown pages"),
    "structure": ("chunkcore/chunkers: auto blocks code html markdown", "auto code html markdown"),
    "semantic": (
        "chunkcore/chunkers: breakpoint cluster_semantic dbscan dual_semantic hierarchical kamradt semantic "
        "single_linkage; chunkcore/segmenters: texttiling",
        "breakpoint cluster_semantic dbscan dual_semantic hierarchical single_linkage segmenters",
    ),
    "llm": ("chunkcore/chunkers: contextual llm llm_semantic lumber propositions", "llm_chunkers"),
    "adapters": (
        "chunkadapters: places langchain/splitter llamaindex/node_parser exact/llamaindex; "
        "haystack_integrations/components/preprocessors/chunkadapters: document_splitter",
        "langchain_adapter llamaindex_adapter haystack_adapter exact named_splitters pages what_chunks_tell",
    ),
}
FILES = ("src", "tests", "integration_tests", "docs", "README.md", "CONTRIBUTING.md")
NOISE = re.compile(r"\braise\b|\bdtype=|\bstrict=|XX")
SETTINGS = """
[tool.mutmut]
source_paths = ["src"]
only_mutate = {paths}
also_copy = {files}
pytest_add_cli_args_test_selection = {tests}
pytest_add_cli_args = ["-p", "no:cacheprovider", "-p", "integration_tests.mutation"]
timeout_multiplier = 3.0
timeout_constant = 3.0
"""


def pytest_make_parametrize_id(argname: str) -> str:
    """Hook of pytest: plain names, for mutmut does not find a test again whose name has a line break."""
    return argname


def mutants(path: str) -> Iterator[tuple[str, str]]:
    """Each mutant's name, and its change as a difference of lines."""
    from mutmut.mutation.file_mutation import mutate_file_contents

    made = mutate_file_contents(path, Path(path).read_text(encoding="utf-8"))
    lines = made.code.splitlines()
    functions = {
        node.name: lines[node.lineno : node.end_lineno]
        for node in ast.walk(ast.parse(made.code))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    module = path.removeprefix("src/").removesuffix(".py").replace("/", ".")
    for name in made.mutant_names:
        old, new = functions[re.sub(r"__mutmut_\d+$", "__mutmut_orig", name)], functions[name]
        change = list(difflib.unified_diff(old, new, n=0, lineterm=""))[2:]
        gone, put = ("\n".join(line for line in change if line.startswith(sign)) for sign in "-+")
        if (
            not NOISE.search(gone + put)
            and put.count("None") <= gone.count("None")
            and gone[1:].casefold() != put[1:].casefold()
        ):
            yield f"{module}.{name}", "\n".join(change)


def files_of(part: str) -> tuple[list[str], list[str]]:
    """A part's modules and tests, as paths."""
    modules, names = PARTS[part]
    rooms = [room.strip().split(": ") for room in modules.split(";")]
    tests = [f"tests/test_{name}.py" for name in names.split()]
    tests = [file if (ROOT / file).exists() else f"integration_{file}" for file in tests]
    return [f"src/{room}/{name}.py" for room, inside in rooms for name in inside.split()], tests


def run(part: str, most: int, seed: int, folder: Path) -> None:
    """Run some of a part's mutants in a folder; print how many there were of each module, and what lived."""
    paths, tests = files_of(part)
    for name in FILES:
        (folder / name).symlink_to(ROOT / name)
    settings = SETTINGS.format(paths=paths, tests=tests, files=list(FILES[1:]))
    (folder / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text("utf-8") + settings, encoding="utf-8")
    os.chdir(folder)
    changes = {path: dict(mutants(path)) for path in paths}
    draw = random.Random(seed)
    chosen = {path: draw.sample(sorted(made), min(most, len(made))) for path, made in changes.items()}
    (folder / "mutants/src").mkdir(parents=True)  # on the path below, where what is missing at the start stays so
    surroundings = {**os.environ, "PYTHONPATH": f"{folder}/mutants/src:{folder}/mutants"}
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", "1", *chain.from_iterable(chosen.values())]
    done = subprocess.run(command, check=False, env=surroundings, capture_output=True, text=True)
    for path, sample in chosen.items():
        codes = json.loads(Path("mutants", path + ".meta").read_text(encoding="utf-8"))["exit_code_by_key"]
        if any(codes[name] is None for name in sample):
            sys.exit(f"{part}: mutmut ended early:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        alive = sorted(name for name in sample if codes[name] in (0, 33))  # 33: no test runs the function
        counts = (
            f"{len(changes[path])} mutants, {len(sample)} run, {len(sample) - len(alive)} killed, {len(alive)} live"
        )
        print(f"{path}: {counts}")
        for name in alive:
            print(f"{name}\n{changes[path][name]}", flush=True)


def main() -> None:
    """The parts asked for, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--most", type=int, default=30, help="mutants of a module, drawn at random")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for part in given.parts or PARTS:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(ROOT)
            run(part, given.most, given.seed, Path(folder).resolve())


if __name__ == "__main__":
    main()
