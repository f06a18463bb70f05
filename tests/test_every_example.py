"""Every block of code in the documentation is run by a test, or stands in a list with the reason why not.

Programs in Python run in `integration_tests/test_every_example.py` and in the tests that are named below; commands are
read here by the parser that reads a user's.
"""

from __future__ import annotations

import doctest
import json
import re
from importlib.util import find_spec

import pytest
import typer
import yaml
from chunkcore.cli import app
from docs.making import site

from tests.pages import ROOT, RUN, Block, blocks, commands, inline, pages

# Pages whose programs another test runs.
RUN_ELSEWHERE = {
    "README.md": "integration_tests/test_readme.py",
    "CONTRIBUTING.md": "tests/test_contributing.py",
    "docs/guides/answers.md": "tests/test_answering.py",
    "docs/guides/exact.md": "integration_tests/test_framework_pages.py",
    "docs/guides/haystack.md": "integration_tests/test_framework_pages.py",
    "docs/guides/langchain.md": "integration_tests/test_framework_pages.py",
    "docs/guides/llamaindex.md": "integration_tests/test_framework_pages.py",
    "docs/reference/measures.md": "tests/test_measures.py",
    "docs/tutorial.md": "integration_tests/test_framework_pages.py",
    "docs/guides/passages.md": "integration_tests/test_framework_pages.py",
    "docs/guides/recipes.md": "integration_tests/test_recipes.py",
}
# What is no program and no command: how it begins, and what it is.
NO_COMMAND = {"text -> Document": "the flow of data, drawn", "openai:gpt": "the string that names a model"}
OUTSIDE = ("cat", "docker", "head", "pip", "python", "make")  # what is not ours is only held to be one of these
CLI = typer.main.get_command(app)
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
PUBLIC = {
    "chunkcore",
    *(f"chunkcore.{room}" for room in site.ROOMS),
    *(f"chunkadapters.{name}" for name in site.ADAPTERS),
}
BLOCKS = [block for page in pages() for block in blocks(page)]


def label(block: Block) -> str:
    return f"{block.page}: {block.text.strip().splitlines()[0][:50]}"


def shell() -> list[Block]:
    return [
        block
        for block in BLOCKS
        if block.language in ("shell", "console", "bash", "sh") and not block.text.startswith(tuple(NO_COMMAND))
    ]


def test_every_program_is_run_by_a_test() -> None:
    programs = {block.page for block in BLOCKS if block.language == "python"}
    untested = programs - set(RUN_ELSEWHERE) - set(RUN)
    assert sorted(untested) == [], "name them in RUN of tests/pages.py"
    assert all((ROOT / test).exists() for test in RUN_ELSEWHERE.values())


def test_programs_import_public_names_only() -> None:
    found = re.compile(r"(?m)^(?:>>> )?from (chunkcore[\w.]*|chunkadapters[\w.]*) import (.+)$")
    for block in BLOCKS:
        for module, names in found.findall(block.text) if block.language == "python" else ():
            assert module in PUBLIC, label(block)
            assert {*names.split(", ")} <= {*site.exported(module)}, f"{block.page}: {module}"


def test_every_exception_is_still_one() -> None:
    assert all(any(block.text.startswith(start) for block in BLOCKS) for start in NO_COMMAND)
    assert {*RUN, *RUN_ELSEWHERE} <= {*pages()}


def test_every_block_is_of_a_known_kind() -> None:
    kinds = {"python", "shell", "console", "bash", "sh", "json", "yaml", "toml", "text"}
    assert [label(block) for block in BLOCKS if block.language not in kinds] == []
    glued = re.compile(r"(?m)^ .*\n(?!el|except|finally)\w")  # an interpreter needs an empty line there
    assert [label(block) for block in BLOCKS if block.language == "python" and glued.search(block.text)] == []


@pytest.mark.parametrize("block", shell(), ids=label)
def test_commands_are_read_as_ours(block: Block) -> None:
    found = commands(block)
    assert found
    for words in found:
        check(words)


def check(words: list[str]) -> None:
    """One command: what it names is there, and its options are."""
    if words[0] == "chunkcore":
        read(words[1:])
    elif words[0] == "make":
        targets = [word for word in words[1:] if "=" not in word]
        assert all(re.search(rf"(?m)^([\w-]+ )*{target}( [\w-]+)*:", MAKEFILE) for target in targets), words
    elif words[:2] == ["python", "-m"]:
        check_module(words[2:])
    elif words[:2] == ["pip", "install"]:
        extras = ",".join(re.findall(r"\[(.+)\]", " ".join(words)))
        assert all(re.search(rf"(?m)^{extra} = \[", PROJECT) for extra in extras.split(",") if extra)
    else:
        assert words[0] in OUTSIDE, f"{words[0]}: neither ours nor in OUTSIDE"


def read(words: list[str]) -> None:
    """The words as the command line reads them; nothing is run. Its strategies' names and options are ours."""
    command, context = CLI, CLI.make_context("chunkcore", list(words), resilient_parsing=True)
    rest = list(words)
    while hasattr(command, "resolve_command"):
        name, command, rest = command.resolve_command(context, rest)
        assert command is not None, f"no such command: {rest}"
        context = command.make_context(name, list(rest), parent=context, resilient_parsing=hasattr(command, "commands"))


def check_module(words: list[str]) -> None:
    """A module of the repository is there, and its file knows the options."""
    module, *rest = words
    if not module.startswith(("chunkcore", "docs", "integration_tests", "tests")):
        assert module in ("build", "http.server", "pytest", "spacy"), module
        return
    spec = find_spec(module)
    assert spec is not None, module
    assert spec.origin is not None
    package = [path.read_text(encoding="utf-8") for path in (ROOT / spec.origin).parent.glob("*.py")]
    for option in (word.partition("=")[0] for word in rest if word.startswith("--")):
        assert any(f'"{option}"' in text for text in package), f"{module} {option}"


@pytest.mark.parametrize("page", pages())
def test_commands_within_sentences_are_ours(page: str) -> None:
    for code in inline(page):
        words = code.split()
        if words[:1] == ["chunkcore"] and len(words) > 1 and words[1].isalpha() and words[1].islower():
            assert words[1] in CLI.commands, code  # type: ignore[attr-defined]
        elif words[:2] == ["python", "-m"]:
            check_module(words[2:])
        elif words[:1] == ["make"] and len(words) > 1:
            check(words)


def test_the_test_modules_that_the_pages_name_are_there() -> None:
    modules = {path.stem for folder in ("tests", "integration_tests") for path in (ROOT / folder).rglob("test_*.py")}
    named = re.compile(r"[\w/]*?(test_\w+)(?:\.py)?")
    for page in pages():
        assert {found[1] for code in inline(page) if (found := named.fullmatch(code))} <= modules, page


@pytest.mark.parametrize("block", [each for each in BLOCKS if each.language in ("json", "yaml")], ids=label)
def test_data_can_be_read(block: Block) -> None:
    if block.language == "json":
        assert [json.loads(line) for line in block.text.splitlines()]
    else:
        assert yaml.safe_load(block.text)


def test_a_typing_error_in_a_command_is_found() -> None:
    for wrong in ("chunkcore chunkk x", "chunkcore compare --dosc docs/", "chunkcore tune -s"):
        with pytest.raises(Exception, match=r"(?i)no such|requires an argument|expected one argument"):
            read(wrong.split()[1:])
    with pytest.raises(AssertionError):
        check(["make", "nothing"])
    with pytest.raises(AssertionError):
        check(["pip", "install", "chunkadapters[nothing]"])
    with pytest.raises(AssertionError):
        check_module(["integration_tests.golden", "--nothing"])


def test_commands_are_found_in_a_block() -> None:
    text = "for x in a b; do\n  A=1 chunkcore chunk \\\n    $x > out  # cuts\ndone\ncat y | chunkcore chunk -\n"
    block = Block("", "shell", text)
    assert commands(block) == [["chunkcore", "chunk", "$x"], ["cat", "y"], ["chunkcore", "chunk", "-"]]
    assert commands(Block("", "console", "$ make test\n3 passed\n")) == [["make", "test"]]


def test_the_examples_of_what_makes_the_pages_hold() -> None:
    done = doctest.testmod(site)
    assert done.failed == 0
    assert done.attempted
