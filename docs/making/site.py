"""Hooks of MkDocs: pages from elsewhere, the reference from the docstrings, and links that lead out of `docs/`."""

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
    "adapters",
    "deepened",
    "exported",
    "led",
    "names_of",
    "on_config",
    "on_files",
    "on_page_markdown",
    "sections",
]

ROOT = Path(__file__).resolve().parents[2]

# Pages that stand elsewhere, by where they are on the site.
ELSEWHERE = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
FRAMEWORKS = ("langchain", "llamaindex", "haystack")

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Complete the navigation: the reference, and the pages that it does not name."""
    nav: list[Any] = config.nav or []
    reference = [{title: path} for title, path in (*sections(), *adapters())]
    nav.append({"Reference": [{"Public names": "api.md"}, *reference]})
    named = set(re.findall(r"[\w/-]+\.md", repr(nav)))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    more = sorted(page for page in pages - named if not page.startswith("strategies/"))
    strategies = sorted(PurePosixPath(page).stem for page in pages - named if page.startswith("strategies/"))
    for entry in nav:
        entry.get("Strategies", []).extend({name: f"strategies/{name}.md"} for name in strategies)
        entry.get("Project", []).extend(more)
    config.nav = nav
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that stand elsewhere, and the reference."""
    from mkdocs.structure.files import File

    for path, source in ELSEWHERE.items():
        files.append(File.generated(config, path, content=(ROOT / source).read_text(encoding="utf-8")))
    for title, path in sections():
        files.append(File.generated(config, path, content=_reference(title, "chunkcore", names_of(title))))
    for title, path in adapters():
        files.append(File.generated(config, path, content=_reference(title, title, exported(title))))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Lead links to where things are on the site; what is not there is named."""
    here = page.file.src_uri
    if here == "index.md":
        page.meta["hide"] = ["navigation"]
    if here == "api.md":
        markdown = re.sub(r"^\| `(\w+)`", r"| [`\1`][chunkcore.\1]", markdown, flags=re.MULTILINE)
    if here.startswith("strategies/"):
        markdown = re.sub(r"(?m)^\| class \| (`(chunkcore\.\w+)`) \|$", r"| class | [\1][\2] |", markdown)
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

    >>> led("[it](../CONTRIBUTING.md#style), [that](../README.md#install), [code](../src/a.py)", "design.md")
    '[it](contributing.md#style), [that](index.md), code (`src/a.py`)'
    """
    stands = PurePosixPath(ELSEWHERE.get(here, f"docs/{here}")).parent
    return _LINK.sub(lambda link: _led(link, here, stands), markdown)


def _led(link: re.Match[str], here: str, stands: PurePosixPath) -> str:
    image, text, target, anchor = link.groups(default="")
    path = normpath(str(stands / target))
    moved = {source: place for place, source in ELSEWHERE.items()} | {"README.md": "index.md"}
    if path in moved:
        there = moved[path]
        anchor = "" if path == "README.md" else anchor
    elif path.startswith("docs/"):
        there = path.removeprefix("docs/")
    else:
        return f"{text} (`{path}`)" if text.strip("`") != path else f"`{path}`"
    return f"{image}[{text}]({relpath(there, PurePosixPath(here).parent.as_posix())}{anchor})"


def sections() -> list[tuple[str, str]]:
    """The headings of the page of public names, and where their reference is."""
    titles = re.findall(r"^## (.+)$", _names_page(), flags=re.MULTILINE)
    return [(title, f"reference/{re.sub(r'[^a-z]+', '-', title.lower())}.md") for title in titles]


def names_of(section: str) -> list[str]:
    """The public names under a heading."""
    part = _names_page().split(f"## {section}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `(\w+)`", part, flags=re.MULTILINE)


def adapters() -> list[tuple[str, str]]:
    """The modules of `chunkadapters`, the frameworks' first, and where their reference is."""
    modules = {path.stem for path in (ROOT / "src" / "chunkadapters").iterdir() if path.suffix in ("", ".py")}
    others = sorted(name for name in modules - {*FRAMEWORKS} if not name.startswith("_"))
    return [(f"chunkadapters.{name}", f"reference/{name}.md") for name in (*FRAMEWORKS, *others)]


def exported(module: str) -> list[str]:
    """The `__all__` of a module of `chunkadapters`, without importing it."""
    place = ROOT / "src" / module.replace(".", "/")
    source = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    raise LookupError(f"{module} has no __all__")


def _reference(title: str, module: str, names: list[str]) -> str:
    return "\n\n".join([f"# {title}", *(f"::: {module}.{name}" for name in names)]) + "\n"


def _names_page() -> str:
    return (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
