"""Blocks of data and of code without a grammar: by brackets (JSON), tags (XML), sections (TOML, INI), else indents."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from chunkcore.boundaries import Block, between, lines

_JSON = re.compile(
    r'"(?:[^"\\]|\\.)*(?:"|\Z)|(?P<open>[\[{])|(?P<close>[\]}])|(?P<part>,)', re.DOTALL
)
_XML = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<[?!][^>]*>"
    r"|(?P<close></[^>]*>)|(?P<part><[^\s<>/][^<>]*/>)|(?P<open><[^\s<>/][^<>]*>)",
    re.DOTALL,
)
_MARKS = {"json": _JSON, "xml": _XML}
_SECTION = re.compile(r"^[ \t]*\[.*\][ \t]*(?:[#;].*)?$", re.MULTILINE)
_WITH_SECTIONS = ("toml", "ini")
_BLANK = re.compile(r"(?:\r\n?|\n)(?:[ \t\f]*(?:\r\n?|\n))+")
_CLOSES = re.compile(
    r"[\])}]|</|(?:end|fi|done|esac|else|elif|elsif|except|catch|finally|rescue|ensure)\b"
)
_ALONE = re.compile(r"\{[ \t]*$")
_OPENED = (",", "[", "{", "(", ";", "}")


def nested_blocks(text: str, language: str) -> list[Block]:
    r"""The blocks of a text that has no grammar here; each has its inner blocks. They cover all but white space.

    Each level of blocks is read again from its text when it is cut: linear time a level.

    >>> text = '{"plans": [{"fee": 1},{"fee": 2}]}'
    >>> outer = nested_blocks(text, "json")[0]
    >>> [text[part.start : part.end] for part in outer.parts()[1].parts()]
    ['"plans": [', '{"fee": 1},', '{"fee": 2}]}']
    """
    marks = _MARKS.get(language)
    if marks:
        cuts = _outer_cuts(text, marks)
        return _blocks(text, 0, len(text), cuts, partial(_elements, text, marks))
    if language in _WITH_SECTIONS:
        cuts = [_above_comments(text, section.start()) for section in _SECTION.finditer(text)]
        return _blocks(text, 0, len(text), cuts, partial(_paragraphs, text))
    cuts = [gap.end() for gap in _BLANK.finditer(text)]
    outer = [cut for cut in cuts if cut < len(text) and text[cut] not in " \t}])"]
    return _blocks(text, 0, len(text), outer, partial(_indented, text))


def _blocks(
    text: str,
    start: int,
    end: int,
    cuts: Sequence[int],
    parts: Callable[[int, int], Sequence[Block]],
    *,
    has_head: bool = False,
) -> list[Block]:
    blocks = []
    for number, kept in enumerate(between(text, start, end, cuts)):
        if kept:
            leads = has_head and number == 0
            inner = None if leads else partial(parts, *kept)
            blocks.append(Block(*kept, whole=True, leads=leads, parts=inner, text="lines"))
    return blocks


def _outer_cuts(text: str, marks: re.Pattern[str]) -> list[int]:
    """Where elements of the outermost level end."""
    cuts = []
    depth = 0
    for mark in marks.finditer(text):
        if mark.lastgroup == "open":
            depth += 1
        elif mark.lastgroup == "close":
            depth = max(0, depth - 1)
        if depth == 0 and mark.lastgroup in ("close", "part"):
            cuts.append(mark.end())
    return cuts


def _elements(text: str, marks: re.Pattern[str], start: int, end: int) -> list[Block]:
    """The head of an element, up to its opening mark, and its children; the last one has the closing mark."""
    cuts = list(_inner_cuts(text, marks, start, end))
    if marks is _XML and len(cuts) > 1:  # the closing tag stays with the last child
        cuts.pop()
    if not cuts:
        return _line_blocks(text, start, end)
    return _blocks(text, start, end, cuts, partial(_elements, text, marks), has_head=True)


def _inner_cuts(text: str, marks: re.Pattern[str], start: int, end: int) -> Iterator[int]:
    """Where an element's opening mark ends, and where its children end."""
    depth = 0
    has_begun = False
    for mark in marks.finditer(text, start, end):
        if mark.lastgroup == "open":
            depth += 1
            if depth == 1 and not has_begun:
                has_begun = True
                yield mark.end()
        elif mark.lastgroup == "close":
            depth -= 1
        ends_child = mark.lastgroup == "part" or (mark.lastgroup == "close" and marks is _XML)
        if ends_child and depth == 1:
            yield mark.end()


class _Line(NamedTuple):
    start: int
    end: int
    indent: int


def _lines(text: str, start: int, end: int) -> list[_Line]:
    rows = []
    for first, last in lines(text, start, end):
        line = text[first:last]
        rows.append(_Line(first, last, len(line) - len(line.lstrip())))
    return rows


def _indented(text: str, start: int, end: int) -> list[Block]:
    """The paragraphs of a range at its least indent; else its lines at that indent, with those deeper below them."""
    rows = _lines(text, start, end)
    begins = [row.start for row in _beginnings(text, rows)]
    blanks = {gap.end() for gap in _BLANK.finditer(text, start, end)}
    inner = partial(_indented, text)
    if paragraphs := [place for place in begins[1:] if place in blanks]:
        return _blocks(text, start, end, paragraphs, inner)
    if len(begins) > 1:
        return _blocks(text, start, end, begins[1:], inner)
    deeper = [row for row in rows if row.indent > rows[0].indent] if rows else []
    body = [row.start for row in _beginnings(text, deeper)]
    if not body:
        return _line_blocks(text, start, end)
    return _blocks(text, start, end, body, inner, has_head=True)


def _beginnings(text: str, rows: Sequence[_Line]) -> Iterator[_Line]:
    """The lines of the least indent that close nothing and open no block of the line before them."""
    least = min((row.indent for row in rows), default=0)
    before = ""
    for row in rows:
        line = text[row.start : row.end].strip()
        opens = _ALONE.match(line) and before and not before.endswith(_OPENED)
        if row.indent == least and not _CLOSES.match(line) and not opens:
            yield row
        before = line


def _above_comments(text: str, start: int) -> int:
    """Where the comments above a section begin."""
    while start:
        before = text.rfind("\n", 0, start - 1) + 1
        if not text[before:start].lstrip().startswith(("#", ";")):
            break
        start = before
    return start


def _line_blocks(text: str, start: int, end: int) -> list[Block]:
    return [Block(first, last, text="words") for first, last in lines(text, start, end)]


def _paragraphs(text: str, start: int, end: int) -> list[Block]:
    cuts = [gap.end() for gap in _BLANK.finditer(text, start, end)]
    return _blocks(text, start, end, cuts, partial(_line_blocks, text))
