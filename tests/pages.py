"""The pages of the documentation, and the blocks of code that stand in them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

__all__ = ["ROOT", "RUN", "Block", "blocks", "commands", "inline", "pages"]

ROOT = Path(__file__).resolve().parents[1]
# Pages whose programs `integration_tests/test_every_example.py` runs, with what their readers have before they begin.
RUN: dict[str, set[str]] = {
    "docs/guides/embedders.md": {"model"},
    "docs/guides/enough.md": set(),
    "docs/guides/language_models.md": set(),
    "docs/guides/production.md": set(),
    "docs/guides/retrievers.md": set(),
    "docs/guides/scale.md": set(),
    "docs/guides/statistics.md": {"reports"},
    "docs/guides/tuning.md": {"any model"},
    "docs/reference/alignment.md": set(),
}
_PARSER = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True)
class Block:
    """A block of code."""

    page: str  # from the root of the repository
    language: str  # what is written after the fence; "shell" for an indented block
    text: str


def pages() -> list[str]:
    """Every page, the strategies' included."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path.relative_to(ROOT).as_posix() for path in found]


def blocks(page: str) -> list[Block]:
    """The blocks of a page, in order."""
    tokens = _PARSER.parse((ROOT / page).read_text(encoding="utf-8"))
    return [
        Block(page, token.info.strip() or ("shell" if token.type == "code_block" else "text"), token.content)
        for token in tokens
        if token.type in ("fence", "code_block")
    ]


def inline(page: str) -> list[str]:
    """The pieces of code within the page's sentences."""
    tokens = _PARSER.parse((ROOT / page).read_text(encoding="utf-8"))
    return [each.content for token in tokens for each in token.children or [] if each.type == "code_inline"]


def commands(block: Block) -> list[list[str]]:
    """The commands of a block, as their words; of a dialogue those after "$"; loops and redirections are taken off."""
    text = block.text.replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines()]
    if any(line.startswith("$ ") for line in lines):
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    found = []
    for line in lines:
        for part in re.split(r"\s(?:\||&&)\s|;\s", re.sub(r"(?:^|\s+)#\s.*$", "", line)):
            words = shlex.split(re.sub(r"\s[12]?>>?\s*\S+", "", part))
            while words and (re.fullmatch(r"[A-Z_]+=\S*", words[0]) or words[0] == "do"):
                words = words[1:]
            if words and words[0] not in ("done", "for"):
                found.append(words)
    return found
