"""Hooks of MkDocs: pages from elsewhere, the reference from the docstrings, and links that lead out of `docs/`.

It imports nothing of the project: MkDocs loads this file alone.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

__all__ = [
    "ADAPTERS",
    "ROOMS",
    "deepened",
    "docstring_markdown",
    "exported",
    "led",
    "listed",
    "markdown_line",
    "on_config",
    "on_files",
    "on_page_markdown",
    "reference",
]

ROOT = Path(__file__).resolve().parents[2]

# Pages that stand elsewhere, by where they are on the site.
ELSEWHERE = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}
# The modules of chunkcore whose `__all__` is public, beside its own.
ROOMS = (
    "errors",
    "options",
    "reading",
    "registry",
    "packing",
    "tokens",
    "models",
    "models.llm",
    "chunkers",
    "retrieval",
    "evaluation",
    "evaluation.benchmarks",
    "evaluation.measures",
    "datasets",
    "study",
    "report",
    "questions",
    "answers",
)
ADAPTERS = ("langchain", "llamaindex", "haystack", "neighbours", "exact")

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Complete the navigation: the chunkers' pages and the reference of each module."""
    for part in config.nav or []:
        for entry in part.get("Reference", []) if isinstance(part, dict) else []:
            if isinstance(entry, dict) and "Chunkers" in entry:
                folder = ROOT / "docs" / "reference" / "chunkers"
                names = sorted(
                    path.stem
                    for path in folder.glob("*.md")
                    if path.stem not in ("index", "sample")
                )
                entry["Chunkers"] += [{name: f"reference/chunkers/{name}.md"} for name in names]
            if isinstance(entry, dict) and "Public names" in entry:
                entry["Public names"] += [{module: path} for module, path, _ in reference()]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of other folders, and the reference."""
    from mkdocs.structure.files import File

    for path, source in ELSEWHERE.items():
        files.append(
            File.generated(config, path, content=(ROOT / source).read_text(encoding="utf-8"))
        )
    for module, path, names in reference():
        content = "\n\n".join([f"# {module}", *(f"::: {module}.{name}" for name in names)]) + "\n"
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Lead links to their places on the site; a target outside the site is named."""
    here = page.file.src_uri
    if here == "index.md":
        page.meta["hide"] = ["navigation"]
    if here.startswith("reference/chunkers/"):
        markdown = re.sub(r"Class: `(chunkcore\.[\w.]+)`", r"Class: [`\1`][\1]", markdown)
    return led(deepened(markdown), here)


def deepened(markdown: str) -> str:
    r"""What goes on under a list's item stands two spaces in, by CommonMark; MkDocs' Markdown asks for four.

    It also asks for a blank line between what so goes on and the next item.

    >>> deepened("- one\n\n  more\n- two\n")
    '- one\n\n    more\n\n- two\n'
    """
    fences = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else _deepened(part) for part in fences)


def _deepened(markdown: str) -> str:
    deeper = re.sub(r"(?m)^  (?=\S)", "    ", markdown)
    return re.sub(r"(?m)(\n\n(?:    .*\n)+)(?=- )", r"\1\n", deeper)


def led(markdown: str, here: str) -> str:
    """A page's text with its links as they are on the site, where the page is `here`.

    >>> led("[it](../CONTRIBUTING.md#style), [that](../README.md#install), [code](../src/a.py)", "concepts.md")
    '[it](contributing.md#style), [that](index.md#install), code (`src/a.py`)'
    """
    stands = PurePosixPath(ELSEWHERE.get(here, f"docs/{here}")).parent
    return _LINK.sub(lambda link: _led(link, here, stands), markdown)


def _led(link: re.Match[str], here: str, stands: PurePosixPath) -> str:
    image, text, target, anchor = link.groups(default="")
    path = normpath(str(stands / target))
    moved = {source: place for place, source in ELSEWHERE.items()}
    if path in moved:
        there = moved[path]
    elif path.startswith("docs/"):
        there = path.removeprefix("docs/")
    else:
        return f"{text} (`{path}`)" if text.strip("`") != path else f"`{path}`"
    return f"{image}[{text}]({relpath(there, PurePosixPath(here).parent.as_posix())}{anchor})"


def reference() -> list[tuple[str, str, list[str]]]:
    """Each module with public names, the page of its reference, and the names that no earlier module has."""
    modules = ["chunkcore", *(f"chunkcore.{room}" for room in ROOMS)]
    modules += [f"chunkadapters.{name}" for name in ADAPTERS]
    found: list[tuple[str, str, list[str]]] = []
    for module in modules:
        seen = {
            name
            for other, _, names in found
            if other.split(".")[0] == module.split(".")[0]
            for name in names
        }
        if names := [
            name
            for name in exported(module)
            if name not in seen or module.startswith("chunkadapters")
        ]:
            found.append((module, f"reference/api/{module.removeprefix('chunkcore.')}.md", names))
    return found


def exported(module: str) -> list[str]:
    """The public names of a module, without importing it; empty where it lists none."""
    place = ROOT / "src" / module.replace(".", "/")
    source = place.with_suffix(".py")
    if not source.exists():  # a folder may be left of a package that has become a module
        source = place / "__init__.py"
    return listed(ast.parse(source.read_text(encoding="utf-8")))


def listed(tree: ast.AST) -> list[str]:
    """What a module's source makes public: its `__all__`, else what it defines, or imports as the same name."""
    found: set[str] = set()
    waiting: list[ast.AST] = list(getattr(tree, "body", ()))
    for node in waiting:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            waiting += node.body
        elif isinstance(node, ast.ImportFrom):
            found.update(each.name for each in node.names if each.asname == each.name)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and not ast.unparse(
            node.value or node
        ).startswith("TypeVar("):
            target = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
            if target == "__all__":
                names: list[str] = ast.literal_eval(node.value)  # type: ignore[arg-type]
                return names
            found.add(target)
    return sorted(each for each in found if each.isidentifier() and not each.startswith("_"))


def markdown_line(line: str) -> str:
    """A line of a docstring: literals stand between single back quotes, and only there "<" is no markup.

    >>> markdown_line("``a < b`` is spacy:<pipeline>")
    '`a < b` is spacy:&lt;pipeline>'
    """
    parts = re.split(r"(`.+?`)", re.sub(r"``(.+?)``", r"`\1`", line))
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;") for part in parts)


def docstring_markdown(docstring: str) -> str:
    r"""A whole docstring without indentation: also its examples are marked as such; indented lines stay as they are.

    >>> docstring_markdown("It adds.\n\n>>> 1 + 1\n2").splitlines()
    ['It adds.', '', '```pycon', '>>> 1 + 1', '2', '```']
    """
    blocks = re.split(r"\n{2,}", docstring.strip("\n"))
    return "\n\n".join(map(_block, blocks))


def _block(block: str) -> str:
    if block.startswith(">>> "):
        return f"```pycon\n{block}\n```"
    return "\n".join(
        line if line.startswith("     ") else markdown_line(line) for line in block.split("\n")
    )
