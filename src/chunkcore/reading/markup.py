"""Markdown from HTML's visible text, and from tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from chunkcore.boundaries.html import parse_html
from chunkcore.lazy import needed

_TICKS = re.compile("`{3,}")
_SKIPPED = frozenset(
    ("script", "style", "template", "head", "noscript", "iframe", "object", "embed", "nav", "#comment")
)
_INLINE_NAMES = """
    a abbr b bdi bdo big button cite code data del dfn em font i input ins kbd label mark q rb rp rt ruby s samp small
    span strong sub sup td th time tt u var wbr"""
_INLINE = frozenset(_INLINE_NAMES.split())
_LINES = frozenset(("pre", "listing", "textarea"))  # whose white space counts


def table(rows: Iterable[Sequence[str]]) -> str:
    r"""A Markdown table, the first row its header; no row is filled up, and rows without text are left out.

    >>> table([["Kind", "Heat"], ["black"]])
    '| Kind | Heat |\n| --- | --- |\n| black |'
    """
    lines: list[str] = []
    for row in rows:
        if any(cell.strip() for cell in row):
            lines.append(f"| {' | '.join(' '.join(cell.split()).replace('|', chr(92) + '|') for cell in row)} |")
            if len(lines) == 1:
                lines.append(f"|{' --- |' * len(row)}")
    return "\n".join(lines)


def fenced(text: str, language: str = "") -> str:
    """A text as a Markdown block of code."""
    fence = "`" * (1 + max([2, *(len(ticks) for ticks in _TICKS.findall(text))]))
    return f"{fence}{language}\n{text}\n{fence}"


def visible_text(html: str) -> str:
    r"""What a reader sees of an HTML page, as Markdown: headings, paragraphs, lists, and tables a row a line.

    Scripts, styles and navigation are left out, links lose their targets, and nothing is fetched.

    Raises `MissingExtraError`: justhtml is not installed.

    >>> visible_text("<nav>Home</nav><h1>Tea</h1><ul><li>black<li>green</ul><p>Hot &amp; sweet")
    '# Tea\n\n- black\n\n- green\n\nHot & sweet'
    """
    needed("justhtml", "files", "read HTML")
    blocks: list[str] = []
    run: list[str] = []
    prefix = ""
    verbatim = 0

    def flush() -> None:
        text = "".join(run)
        if not verbatim:
            text = "\n".join(filter(None, (" ".join(line.split()) for line in text.split("\n"))))
        if text.strip():
            blocks.append(prefix + text.strip("\n"))
        run.clear()

    for node, enters in _walk(parse_html(html)):
        name = node.name
        if name == "#text":
            run.append(node.data if verbatim else re.sub(r"\s", " ", node.data))
        elif name == "br" and enters:
            run.append("\n")
        elif name == "img" and enters:
            run.append(str((node.attrs or {}).get("alt") or ""))
        elif name in ("td", "th"):
            run.append(" | " if enters and "".join(run).strip() else "")
        elif name not in _INLINE:
            flush()
            verbatim += (1 if enters else -1) * (name in _LINES)
            is_heading = len(name) == 2 and name[0] == "h" and name[1].isdigit()
            prefix = "" if not enters else f"{'#' * int(name[1])} " if is_heading else "- " if name == "li" else ""
    flush()
    return "\n\n".join(blocks)


def _walk(root: Any) -> Iterator[tuple[Any, bool]]:
    """Each shown node in order, with True as it begins and, but for texts, with False as it ends."""
    waiting: list[tuple[Any, bool]] = [(root, True)]
    while waiting:  # not recursive: a stranger's page may be nested deeper than Python's stack
        node, enters = waiting.pop()
        if node.name in _SKIPPED:
            continue
        yield node, enters
        if enters and node.name != "#text":
            waiting.append((node, False))
            waiting += [(child, True) for child in reversed(getattr(node, "children", None) or ())]
