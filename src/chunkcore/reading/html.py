"""What a reader sees of HTML, as Markdown, by markdownify over the tree of a parser of the HTML standard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chunkcore.boundaries.html import (
    BLOCK_TAGS,
    UNREAD,
    UNSEEN,
    is_hidden,
    parse_html,
    without_hidden,
)
from chunkcore.errors import MissingExtraError
from chunkcore.lazy import needed
from chunkcore.reading.base import Reader, Reading, readers
from chunkcore.reading.encodings import decode_text
from chunkcore.reading.visible import source_mark
from chunkcore.text import Document

if TYPE_CHECKING:
    from bs4 import Tag

# A table with one of these holds a page's layout.
_LAYOUT = ["table", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "pre", "blockquote"]
_MOST_COLUMNS = 1000


_TAG = re.compile(r"</?([a-zA-Z][a-zA-Z0-9]*)(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>|<![^>]*>")
_TITLE = re.compile(r"<title[^>]*>([^<]+)", re.IGNORECASE)
_PLAIN = "its headings, lists and tables are plain text: pip install chunkadapters[files]"


@readers.register("HTML")
class Page(Reader):
    """A page as a reader sees it, in Markdown; see `in_source` for places in the file. The extra ``files``."""

    endings = ("html", "htm", "xhtml")

    def read(self, data: bytes, name: str) -> Reading:
        html, note = decode_text(data, Path(name))
        notes = [note] if note else []
        if not _TAG.search(html):
            return Reading(Document(name, html), tuple(notes))
        try:
            text = visible_text(html)
        except MissingExtraError:
            text = _plain_text(html)
            notes.append(_PLAIN)
        metadata = {"format": "markdown"}
        title = _TITLE.search(html)
        if title:
            metadata["title"] = " ".join(unescape(title[1]).split())
        return Reading(Document(name, text, metadata, source_mark(html, text)), tuple(notes))


def _plain_text(html: str) -> str:
    """The text between tags, without a parser: a line for each block."""

    def between(tag: re.Match[str]) -> str:
        return "\n" if (tag[1] or "").lower() in {*BLOCK_TAGS, "br"} else ""

    shown = UNREAD.sub(" ", without_hidden(html))
    text = unescape(_TAG.sub(between, _TITLE.sub("", shown)))
    rows = (" ".join(row.split()) for row in text.splitlines())
    return "\n".join(row for row in rows if row)


def visible_text(html: str) -> str:
    r"""What a reader sees of an HTML page, as Markdown: headings, paragraphs, lists, tables and quotations.

    Scripts, styles, navigation and what is hidden are left out, links lose their targets, and nothing is fetched.

    Raises `MissingExtraError`: markdownify or justhtml is not installed.

    >>> visible_text("<nav>Home</nav><h1>Tea</h1><ul><li>black<li>green</ul><p>Hot &amp; sweet")
    '# Tea\n\n- black\n- green\n\nHot & sweet'
    """
    soup_of = needed("bs4", "files", "read HTML", "beautifulsoup4").BeautifulSoup
    converter = _converter()
    soup = soup_of(parse_html(html).to_html(pretty=False), "html.parser")
    for element in soup.find_all(UNSEEN):
        element.decompose()
    for element in soup.find_all(lambda tag: is_hidden(tag.name, tag.attrs)):
        element.decompose()
    for item in soup.select("ol > li:first-child[value]"):
        item.parent["start"] = item["value"]
    for table in soup.find_all("table"):
        columns = max(map(len, _rows(table)), default=0)
        if table.find(_LAYOUT) or columns < 2:
            _unfold(table)
        else:
            _fill(table)
    try:
        text = converter.convert_soup(soup)
    except RecursionError:  # nested deeper than Python's stack
        text = soup.get_text("\n")
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n")


@cache
def _converter() -> Any:
    markdownify = needed("markdownify", "files", "read HTML")

    class Visible(markdownify.MarkdownConverter):  # type: ignore[name-defined,misc]
        def convert_a(self, element: Tag, text: str, parent_tags: set[str]) -> str:
            return text

        convert_code = convert_kbd = convert_samp = convert_del = convert_s = convert_a

        def convert_br(self, element: Tag, text: str, parent_tags: set[str]) -> str:
            return " " if "_inline" in parent_tags else "\n"

        def convert_img(self, element: Tag, text: str, parent_tags: set[str]) -> str:
            return str(element.get("alt") or "")

        def convert_pre(self, element: Tag, text: str, parent_tags: set[str]) -> str:
            return f"\n\n{fenced(text)}\n\n" if text.strip() else ""

    return Visible(
        heading_style="atx",
        bullets="-",
        strong_em_symbol="",
        escape_asterisks=False,
        escape_underscores=False,
        table_infer_header=True,
        wrap=True,  # line ends of the source are spaces
        wrap_width=None,
    )


def fenced(text: str, language: str = "") -> str:
    """Code as a block of Markdown, whose fence is longer than any run of its sign in the text.

    >>> print(fenced("a = 1", "python"))
    ```python
    a = 1
    ```
    """
    runs = (len(run) for run in re.findall("`{3,}", text))
    fence = "`" * max(3, 1 + max(runs, default=0))
    code = text.strip("\n")
    return f"{fence}{language}\n{code}\n{fence}"


def _rows(table: Tag) -> Iterator[list[Tag]]:
    for row in table.find_all("tr"):
        yield row.find_all(["td", "th"], recursive=False)


def _unfold(table: Tag) -> None:
    """Make each cell a block."""
    parts = table.find_all(["thead", "tbody", "tfoot", "tr", "td", "th"])
    for part in [part for part in parts if part.find_parent("table") is table]:
        part.name = "div"
    table.name = "div"


def _fill(table: Tag) -> None:
    """Add an empty cell wherever a cell of a row above reaches down."""
    from bs4 import Tag

    reaching: dict[int, int] = {}  # rows still covered, by column
    for cells in _rows(table):
        column = 0
        for cell in cells:
            while reaching.get(column, 0):
                cell.insert_before(Tag(name="td"))
                reaching[column] -= 1
                column += 1
            rows, columns = _number(cell, "rowspan"), _number(cell, "colspan")
            reaching.update(dict.fromkeys(range(column, column + columns), rows - 1))
            column += columns
        while cells and reaching.get(column, 0):
            cells[-1].parent.append(Tag(name="td"))  # type: ignore[union-attr]
            reaching[column] -= 1
            column += 1


def _number(cell: Tag, name: str) -> int:
    value = str(cell.get(name) or "")
    return min(int(value), _MOST_COLUMNS) if re.fullmatch("[1-9][0-9]{0,3}", value) else 1
