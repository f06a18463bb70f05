"""Markdown from headings, paragraphs, lists, tables and code, with marks; and from HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from chunkcore.boundaries.html import parse_html
from chunkcore.document import Mark, Span
from chunkcore.lazy import needed

_BLANK = re.compile(r"[ \t\r\f\v\u00a0]+")
_TICKS = re.compile("`{3,}")
_INSTRUCTION = re.compile(r"<\?[^>]*(?:>|\Z)")  # an XML declaration, which justhtml takes for text


class MarkdownText:
    r"""A Markdown text that is written block by block, and its marks.

    >>> text = MarkdownText()
    >>> text.heading(1, "Tea")
    >>> text.table([["Kind", "Heat"], ["black", "hot"]])
    >>> text.text, [mark.kind for mark in text.marks]
    ('# Tea\n\n| Kind | Heat |\n| --- | --- |\n| black | hot |', ['heading', 'table'])
    """

    def __init__(self) -> None:
        self.marks: list[Mark] = []
        self.size = 0
        self._parts: list[str] = []
        self._in_list = False

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def heading(self, level: int, title: str) -> None:
        if title := " ".join(title.split()):
            level = min(max(level, 1), 6)
            span = self._block("#" * level + " " + title)
            self.marks.append(Mark("heading", span, {"level": level}))

    def paragraph(self, text: str) -> None:
        if text := "\n".join(filter(None, (_BLANK.sub(" ", line).strip() for line in text.split("\n")))):
            self._block(text)

    def item(self, depth: int, number: int | None, text: str) -> None:
        """A list's item; `number` is None for a bullet."""
        if text := " ".join(text.split()):
            mark = "-" if number is None else f"{number}."
            self._block(f"{'  ' * min(depth, 8)}{mark} {text}", item=True)

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """A table; the first row is its header."""
        cells = [[" ".join(cell.split()).replace("|", r"\|") for cell in row] for row in rows]
        cells = [row for row in cells if any(row)]
        if cells:
            width = max(map(len, cells))
            lines = [f"| {' | '.join([*row, *[''] * (width - len(row))])} |" for row in cells]
            lines.insert(1, f"|{' --- |' * width}")
            self.marks.append(Mark("table", self._block("\n".join(lines)), {"rows": len(cells), "columns": width}))

    def code(self, text: str, language: str = "") -> None:
        if text := text.strip("\n"):
            fence = "`" * (1 + max([2, *(len(ticks) for ticks in _TICKS.findall(text))]))
            self._block(f"{fence}{language}\n{text}\n{fence}")

    def verbatim(self, text: str) -> Span | None:
        """Text as it is, such as Markdown."""
        text = text.strip("\n")
        return self._block(text) if text.strip() else None

    def _block(self, text: str, *, item: bool = False) -> Span:
        gap = "" if not self.size else "\n" if item and self._in_list else "\n\n"
        self._in_list = item
        start = self.size + len(gap)
        self._parts += [gap, text]
        self.size = start + len(text)
        return Span(start, self.size)


_SKIPPED = frozenset(("script", "style", "template", "head", "noscript", "iframe", "object", "embed", "#comment"))
_INLINE_NAMES = """
    a abbr b bdi bdo big button cite code data del dfn em font i input ins kbd label mark q rb rp rt ruby s samp small
    span strong sub sup time tt u var wbr"""
_INLINE = frozenset(_INLINE_NAMES.split())


def add_html(text: MarkdownText, html: str) -> None:
    """Add an HTML page's visible text: headings, paragraphs, lists, tables and code; of a picture its ``alt``.

    Scripts and styles are left out, links lose their targets, and nothing is fetched.

    Raises `MissingExtraError`: justhtml is not installed.
    """
    needed("justhtml", "files", "read HTML")
    _HtmlWriter(text).write(parse_html(_INSTRUCTION.sub("", html)))


class _HtmlWriter:
    def __init__(self, text: MarkdownText) -> None:
        self.text = text
        self.run: list[str] = []
        self.lists: list[int | None] = []  # of open lists, the last number; None for bullets
        self.rows: list[list[str]] | None = None  # of the open table
        self.tables = 0
        self.lines = 0  # open elements whose white space counts

    def write(self, root: Any) -> None:
        # Not recursive: a stranger's page may be nested deeper than Python's stack.
        waiting: list[tuple[Any, Iterator[Any]]] = [(root, iter(root.children or ()))]
        while waiting:
            node, children = waiting[-1]
            child = next(children, None)
            if child is None:
                waiting.pop()
                self._leave(node)
            elif child.name == "#text":
                self.run.append(child.data if self.lines else re.sub(r"\s+", " ", child.data))
            elif child.name not in _SKIPPED:
                self._enter(child)
                waiting.append((child, iter(getattr(child, "children", None) or ())))
        self._flush()

    def _enter(self, node: Any) -> None:
        name = node.name
        if name == "br":
            self.run.append("\n")
        elif name in ("img", "image"):
            self.run.append(str((node.attrs or {}).get("alt") or ""))
        elif name not in _INLINE:
            self._flush()
        if name in ("ul", "ol"):
            self.lists.append(0 if name == "ol" else None)
        elif name == "li" and self.lists and self.lists[-1] is not None:
            self.lists[-1] += 1
        elif name == "table":
            self.tables += 1
            self.rows = [] if self.rows is None else self.rows
        elif name == "tr" and self.rows is not None and self.tables == 1:
            self.rows.append([])
        elif name in ("pre", "listing", "textarea"):
            self.lines += 1

    def _leave(self, node: Any) -> None:
        name = node.name
        if name in ("td", "th") and self.rows and self.tables == 1:
            self.rows[-1].append("".join(self.run))
            self.run.clear()
        elif name == "caption" and self.rows == []:
            self.text.paragraph("".join(self.run))
            self.run.clear()
        elif name in ("pre", "listing", "textarea"):
            self.lines -= 1
            if self.rows is None:
                self.text.code("".join(self.run))
                self.run.clear()
        elif len(name) == 2 and name[0] == "h" and name[1] in "123456" and self.rows is None:
            self.text.heading(int(name[1]), "".join(self.run))
            self.run.clear()
        elif name == "li":
            self._flush(item=True)
        elif name in ("ul", "ol"):
            self._flush()
            if self.lists:
                self.lists.pop()
        elif name == "table":
            self.tables -= 1
            if self.tables == 0 and self.rows is not None:
                rows, self.rows = self.rows, None
                self.text.table(rows)
                self._flush()  # what stood outside its cells
        elif name not in _INLINE:
            self._flush()

    def _flush(self, *, item: bool = False) -> None:
        """Write what was read since the last block; within a table it stays in its cell."""
        if self.rows is not None:
            self.run.append(" ")
            return
        text = "".join(self.run)
        self.run.clear()
        if not text.strip():
            return
        if self.lists and not self.lines:
            self.text.item(len(self.lists) - 1, self.lists[-1] or None, text)
        else:
            self.text.paragraph(text)
