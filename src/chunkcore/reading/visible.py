"""What a reader sees of a document: pages as Markdown, by markdownify over the tree of a parser of the HTML standard;
documents without tags and without pictures as base64. Places in the source are kept.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache
from html import unescape
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from chunkcore.boundaries import HTML_PAGE, one_line, pairs, words
from chunkcore.boundaries.formats import format_of
from chunkcore.boundaries.html import (
    ANCHORS,
    BLOCK_TAGS,
    UNSEEN,
    HtmlText,
    VisibleHtml,
    is_hidden,
    parse_html,
    parts_without_pictures,
    visible_pieces,
)
from chunkcore.boundaries.sentences import block_edges, heading_tags
from chunkcore.errors import DataError, MissingExtraError, echo
from chunkcore.lazy import needed
from chunkcore.reading.base import Reader, Reading
from chunkcore.reading.encodings import decode_text
from chunkcore.text import Document, Mark, Span

if TYPE_CHECKING:
    from bs4 import Tag


@dataclass(frozen=True, kw_only=True)
class VisibleDocument(Document):
    """A document of the text that a reader sees of another, its `source`."""

    source: Document
    seen: HtmlText = field(repr=False, compare=False)
    edges: tuple[int, ...] = ()  # of HTML, where blocks begin

    def places(self, spans: Sequence[Span]) -> tuple[Span, ...]:
        """Where spans of this text stand in the source."""
        places: list[Span] = []
        for span in spans:
            places += self.seen.spans(span.start, span.end)
        return tuple(places)


def without_pictures(document: Document) -> Document:
    """The document without its pictures as base64; the document itself where it has none."""
    whole = [(0, document.size)]
    pieces = parts_without_pictures(document.text, whole)
    if pieces == whole:
        return document
    return _visible(document, HtmlText(document.text, pieces))


def has_markup(document: Document) -> bool:
    """Whether a document is HTML: by its metadata or name (`format_of`), or, where they say nothing, its beginning."""
    kind = format_of("", document).kind
    return kind == "html" or (kind == "prose" and HTML_PAGE.match(document.text) is not None)


def is_html(document: Document) -> bool:
    """Whether a document with tags is cut as a reader sees it, as ``metadata["html"]`` and `html_setting` allow."""
    if "<" not in document.text or not has_markup(document):
        return False
    return "source" not in (document.metadata.get("html"), html_setting())


def visible_document(document: Document) -> Document:
    r"""The text that a reader sees of a document of HTML; the document itself without justhtml.

    >>> page = Document("a.html", "<h1>Tea</h1><p>It is <b>hot</b>.</p>")
    >>> visible_document(page).text
    'Tea\nIt is hot.'
    """
    try:
        seen = VisibleHtml(document.text)
    except MissingExtraError:
        return document
    visible = _visible(document, seen)
    edges = tuple(map(seen.place, block_edges(document.text)))
    starts = sorted({*map(seen.place, heading_tags(document.text)), len(seen.text)})
    marks = visible.marks + section_marks(starts)
    return replace(visible, edges=edges, marks=marks)


def section_marks(starts: Sequence[int]) -> tuple[Mark, ...]:
    """A mark ``section`` from each place to the next."""
    return tuple(Mark("section", Span(*pair)) for pair in pairwise(starts))


class SeenSpans:
    """The parts of spans that a reader sees: of documents of HTML without the tags.

    >>> page = Document("a.html", "<p>Tea <b>is</b> hot.</p>")
    >>> [span.slice(page.text) for span in SeenSpans([page]).of("a.html", Span(3, 21))]
    ['Tea', 'is', 'hot.']
    """

    def __init__(self, documents: Iterable[Document]) -> None:
        self._pages = {document.id: document for document in documents if is_html(document)}

    def of(self, document_id: str, span: Span) -> tuple[Span, ...]:
        """The span itself where it holds no text that a reader sees."""
        page = self._pages.get(document_id)
        if page and not isinstance(page, VisibleDocument):  # not yet read
            page = self._pages[document_id] = visible_document(page)
        if isinstance(page, VisibleDocument):
            vars(page.seen).pop("tree", None)  # which is larger than the page, and for chunkers
            start, end = page.seen.place(span.start), page.seen.place(span.end)
            if start < end:
                return page.places([Span(start, end)])
        return (span,)


def _visible(document: Document, seen: HtmlText) -> VisibleDocument:
    marks = []
    for mark in document.marks:
        start, end = seen.place(mark.span.start), seen.place(mark.span.end)
        if start < end:
            marks.append(replace(mark, span=Span(start, end)))
    return VisibleDocument(
        document.id, seen.text, document.metadata, tuple(marks), source=document, seen=seen
    )


Html = Literal["visible", "source"]


_html: ContextVar[Html | None] = ContextVar("html", default=None)


@contextmanager
def html_as(html: Html | None) -> Iterator[None]:
    """Files of HTML are read so in a block, where no argument says otherwise."""
    before = _html.set(html)
    try:
        yield
    finally:
        _html.reset(before)


def html_setting() -> Html:
    """How HTML is read where no argument says it: as of `html_as`, else of the environment's ``CHUNKCORE_HTML``."""
    is_source = os.environ.get("CHUNKCORE_HTML") == "source"
    return _html.get() or ("source" if is_source else "visible")


_FAR = 5000  # characters of the text in which the next piece is looked for
_NEAR = 10  # the same for signs, which may stand for something else farther on
_WORD = re.compile(r"\S+")
_BLANKS = str.maketrans("\n\r\t\f", "    ")
_EXPONENT = re.compile(r"[0-9+\-\u2212=()]+")
_RAISED = str.maketrans("0123456789+-\u2212=()", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾")
_SAME = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻\u2212⁼⁽⁾", "0123456789+--=()")


def source_mark(html: str, text: str) -> tuple[Mark, ...]:
    """A mark ``source`` over the text that a reader sees of HTML: where its pieces stand in both.

    ``data["pieces"]`` has a place in the text, a place in the HTML and the length in each, piece by piece;
    ``data["lines"]`` where the lines of the HTML begin.
    """
    pieces = []
    reached = 0
    folded = text.translate(_SAME)

    def add(start: int, end: int, words: str) -> bool:
        nonlocal reached
        far = _FAR if any(map(str.isalnum, words)) else _NEAR
        place = folded.find(words.translate(_SAME), reached, reached + far + len(words))
        if place >= 0:
            pieces.append([place, start, len(words), end - start])
            reached = place + len(words)
        return place >= 0

    for start, end in visible_pieces(html):
        if not add(start, end, html[start:end].translate(_BLANKS)):
            for word in _WORD.finditer(html, start, end):
                shown = unescape(word[0]).strip()  # of "&nbsp;"
                add(*word.span(), shown) or add(*word.span(), in_cell(shown))
    if not pieces:
        return ()
    lines = [0, *(match.end() for match in re.finditer("\n", html))]
    return (Mark("source", Span(0, len(text)), {"pieces": pieces, "lines": lines}),)


def in_source(document: Document, spans: Iterable[Span]) -> list[Span]:
    """Where spans of a document's text stand in its file: of a page of HTML with the tags in between, else as they are.

    >>> page = "<p>Tea <b>is</b> hot.</p>"
    >>> document = Document("a.html", "Tea is hot.", marks=source_mark(page, "Tea is hot."))
    >>> [span.slice(page) for span in in_source(document, [Span(4, 11)])]
    ['is</b> hot.']
    """
    return [_between(document, span, shown=0) for span in spans]


def from_source(document: Document, span: Span) -> Span:
    """The inverse of `in_source`: where a span of the file stands in the document's text."""
    return _between(document, span, shown=1)


def lines_of(document: Document, spans: Sequence[Span]) -> list[int]:
    """The first and the last line of a document's file, from 1, that hold some of the spans, which are in order."""
    span = _between(document, Span(spans[0].start, spans[-1].end), shown=0)
    ends = span.start, span.end - 1
    mark = source_of(document)
    if mark is None:
        return [1 + document.text.count("\n", 0, place) for place in ends]
    return [bisect_right(mark.data["lines"], place) for place in ends]


def source_of(document: Document) -> Mark | None:
    """The document's mark ``source`` as of `source_mark`; None where its text is the file's. Others' marks of that name
    say nothing here.
    """
    for mark in document.marks:
        if mark.kind == "source" and {"pieces", "lines"} <= mark.data.keys():
            return mark
    return None


def with_right_places(document: Document) -> Document:
    """The document, of which a file brought the marks. Raises `DataError`: its mark ``source`` has no such places."""
    mark = source_of(document)
    if mark:
        try:
            pieces, lines = np.array(mark.data["pieces"]), np.array(mark.data["lines"])
        except ValueError:  # of several lengths
            pieces = lines = np.array(None)
        shapes = pieces.shape[1:], lines.ndim, pieces.dtype.kind, lines.dtype.kind
        if shapes != ((4,), 1, "i", "i"):
            raise DataError(f"the mark source of {echo(document.id)} has no pieces and lines")
    return document


def _between(document: Document, span: Span, *, shown: int) -> Span:
    """From the first piece that ends after the span's start to the last that starts before its end; or between two."""
    mark = source_of(document)
    if mark is None or not mark.data["pieces"]:
        return span
    pieces: Sequence[Sequence[int]] = mark.data["pieces"]
    here, there = shown, 1 - shown
    first = bisect_right(pieces, span.start, key=lambda piece: sum(piece[here::2]))
    last = bisect_left(pieces, span.end, key=itemgetter(here)) - 1
    if 0 <= last < first < len(pieces):  # such as the text of a picture
        start = sum(pieces[last][there::2])
        return Span(start, max(start + 1, pieces[first][there]))
    first = min(first, len(pieces) - 1)
    begin, end = pieces[first], pieces[max(first, last)]
    start = begin[there]
    if begin[2] == begin[3]:
        start += max(0, span.start - begin[here])
    stop = end[there] + end[there + 2]
    if end[2] == end[3]:
        stop -= max(0, end[here] + end[here + 2] - span.end)
    return Span(start, max(start + 1, stop))


# ---- Pages as Markdown


_PLAIN_BLOCKS = BLOCK_TAGS - words(
    """article blockquote body caption dd div dl dt figcaption h1 h2 h3 h4 h5 h6 hr html li ol p pre section table tbody
    td tfoot th thead title tr ul"""
)
_WORDS = words("a b button em font i label span strong")
# In a paragraph: what begins a heading of Markdown, and the line end before what makes one of the lines above it.
HASHES = re.compile("(?m)^#{1,6}(?= )")
RULE = re.compile(r"(?m)\n(?=[-=]+ *$)")
_BLOCK_STYLE = re.compile(r"(?i)display\s*:\s*(?:block|flex|grid|list-item)")
# A table with one of these in it holds a page's layout, if it has one row or a cell over so many characters.
_BLOCKS = words("h1 h2 h3 h4 h5 h6 ul ol pre blockquote")
_LONG_CELL = 200
_MOST_COLUMNS = 1000


_TAG = re.compile("<[a-zA-Z/!?]")
_TITLE = re.compile(r"(?i)<title[^>]*>([^<]+)")


class Page(Reader):
    """A page as a reader sees it, in Markdown; see `in_source` for places in the file. The extra ``files``."""

    endings = ("html", "htm", "xhtml")

    def read(self, data: bytes, name: str) -> Reading:
        html, notes = decode_text(data, name)
        if not _TAG.search(html):
            return Reading(Document(name, html), notes)
        text = visible_text(html)
        metadata = {"format": "markdown"}
        title = _TITLE.search(html)
        if title:
            metadata["title"] = one_line(unescape(title[1]))
        return Reading(Document(name, text, metadata, source_mark(html, text)), notes)


def visible_text(html: str) -> str:
    r"""What a reader sees of an HTML page, as Markdown: headings, paragraphs, lists, tables and quotations.

    Scripts, styles, navigation and what is hidden are left out, links lose their targets, and nothing is fetched.

    Raises `MissingExtraError`: markdownify or justhtml is not installed.

    >>> visible_text("<nav>Home</nav><h1>Tea</h1><ul><li>black<li>green</ul><p>Hot &amp; sweet")
    '# Tea\n\n- black\n- green\n\nHot & sweet'
    """
    soup_of = needed("bs4", "files", "read HTML", "beautifulsoup4").BeautifulSoup
    converter = _converter()
    soup = soup_of(parse_html(html, places=False).to_html(pretty=False), "html.parser")
    _without_unseen(soup)
    _with_lines_of_code(soup)
    _with_signs(soup)
    for element in soup.find_all(_is_plain_block):
        element.name = "div"
    for numbered in soup.find_all("ol"):
        _count(numbered)
    tables = soup.find_all("table")
    mends = [_unfold if _is_layout(table) else _fill for table in tables]
    # Inner tables first: the parts of what is done are not looked through again.
    for table, mend in reversed([*zip(tables, mends, strict=True)]):
        mend(table)
    try:
        text = converter.convert_soup(soup)
    except RecursionError:  # nested deeper than Python's stack
        text = soup.get_text("\n")
    text = re.sub(r"(?m)(?<![ \t\xa0])[ \t\xa0]+$", "", text)
    text = re.sub(r"(?m)^(>[> ]*)(?:\n\1)+$", r"\1", text)  # blank lines in a quote
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n")


def _without_unseen(soup: Tag) -> None:
    for element in soup.find_all(lambda tag: tag.name in UNSEEN or is_hidden(tag.name, tag.attrs)):
        element.decompose()
    for link in soup.select("a.anchor-link, :is(h1, h2, h3, h4, h5, h6) a"):
        if link.get_text().strip() in ANCHORS:  # beside a heading
            link.decompose()
    for heading in soup.find_all(re.compile("^h[1-6]$")):
        if not (heading.get_text(strip=True) or heading.find("img")):
            heading.unwrap()


def _with_lines_of_code(soup: Tag) -> None:
    """Make lines of the blocks and list items in code, as Starlight and Prettify write them."""
    for line in soup.select("pre :is(div, ol, ol li)"):
        before = line.previous_sibling
        if before is not None and before.text[-1:] not in ("", "\n"):
            before.insert_after("\n")
        if not line.find(["div", "li"]):
            line.append("\n")
        line.name, line.attrs = "span", {}


def _with_signs(soup: Tag) -> None:
    """Write what drawings, formulas, tasks and notes show by their form."""
    for label in soup.select("svg text, svg title"):
        label.append(" ")
    for root in soup.select("msqrt, mroot"):
        root.insert(0, "√")
    for fraction in soup.select("mfrac > :last-child"):
        fraction.insert_before("/")
    for power in soup.select("msup > :last-child, msubsup > :last-child"):
        power.name = "sup"
    for box in soup.select("[type=checkbox][disabled]"):  # a task's; others may open a menu
        sign = "[x]" if box.has_attr("checked") else "[ ]"
        box.replace_with(sign)
    for note in soup.select('[epub\\:type="noteref"]'):
        if not note.find_parent("sup"):
            note.name = "sup"


@cache
def _converter() -> Any:  # noqa: C901  # of all its methods together
    markdownify = needed("markdownify", "files", "read HTML")

    class Visible(markdownify.MarkdownConverter):  # type: ignore[name-defined,misc]
        def convert_p(self, element: Tag, text: str, parent_tags: set[str]) -> str:
            shown = str(super().convert_p(element, text, parent_tags))
            return HASHES.sub(r"\\\g<0>", RULE.sub("\n\n", shown))

        def convert_sup(self, element: Tag, text: str, parent_tags: set[str]) -> str:
            return raised(text)

        convert_strike = markdownify.MarkdownConverter.convert_del

        def convert_td(self, element: Tag, text: str, parent_tags: set[str]) -> str:
            return str(super().convert_td(element, in_cell(text), parent_tags))

        convert_th = convert_td

        def convert_tr(self, element: Tag, text: str, parent_tags: set[str]) -> str:
            table = element.find_parent("table")
            if table is None or table.find("tr") is not element:
                return f"|{text}\n"
            cells = element.find_all(["td", "th"])
            rule = " --- |" * sum(_number(cell, "colspan") for cell in cells)
            return f"|{text}\n|{rule}\n"

        def convert_li(self, element: Tag, text: str, parent_tags: set[str]) -> str:
            item = str(super().convert_li(element, text, parent_tags))
            lists = element.parent
            if lists is None or lists.name != "ol" or not text.strip():
                return item
            number = str(element["value"])
            if lists.get("type") in _LETTERS:
                number = f"- {numeral(int(number), _LETTERS[str(lists['type'])])}"
            return number + item[item.index(".") :]

        def convert_br(self, element: Tag, text: str, parent_tags: set[str]) -> str:
            return " " if "_inline" in parent_tags else "\n"

        def convert_img(self, element: Tag, text: str, parent_tags: set[str]) -> str:
            alternative = str(element.get("alt") or "")
            before, after = element.previous_sibling, element.next_sibling
            if alternative and isinstance(before, str) and before[-1:].isalnum():
                alternative = f" {alternative}"
            if alternative and isinstance(after, str) and after[:1].isalnum():
                alternative += " "
            return alternative

        def convert_pre(self, element: Tag, text: str, parent_tags: set[str]) -> str:
            if "_inline" in parent_tags:
                return text
            return f"\n\n{fenced(text)}\n\n" if text.strip() else ""

    return Visible(
        heading_style="atx",
        bullets="-",
        strip=["a", "code", "kbd", "samp"],  # the marks, not the text
        strong_em_symbol="",
        escape_asterisks=False,
        escape_underscores=False,
        wrap=True,  # line ends of the source are spaces
        wrap_width=None,
    )


_LETTERS = pairs("a=lowerLetter A=upperLetter i=lowerRoman I=upperRoman")
_ROMAN = pairs("m=1000 cm=900 d=500 cd=400 c=100 xc=90 l=50 xl=40 x=10 ix=9 v=5 iv=4 i=1")
_DIGITS = "〇一二三四五六七八九"


def numeral(number: int, form: str) -> str:
    """A number as Word writes it in one of its forms: after z comes aa, then bb.

    >>> numeral(27, "upperLetter"), numeral(14, "lowerRoman"), numeral(7, "decimalZero"), numeral(20, "chineseCounting")
    ('AA', 'xiv', '07', '二十')
    """
    if form == "decimalZero":
        return f"{number:02}"
    text = str(number)
    if not 0 < number < 4000:
        return text
    if form.endswith("Letter"):
        text = chr(ord("a") + (number - 1) % 26) * (1 + (number - 1) // 26)
    elif form.endswith("Roman"):
        text = ""
        for letters, value in _ROMAN.items():
            text += number // int(value) * letters
            number %= int(value)
    elif "Counting" in form and number < 100:
        tens, ones = divmod(number, 10)
        counted = f"{_DIGITS[tens]}十{_DIGITS[ones]}".removeprefix("〇十").strip("〇")
        text = counted.replace("一十", "十")
    return text.upper() if form.startswith("upper") else text


def in_cell(text: str) -> str:
    """Text as it stands in a cell of a Markdown table."""
    return text.replace("|", "\\|")


def raised(text: str) -> str:
    """Raised numbers as Unicode's: 10 to the 6 is not 106. Other text stays.

    >>> raised("-3"), raised("nd"), raised("[1]")
    ('⁻³', 'nd', '[1]')
    """
    return text.translate(_RAISED) if _EXPONENT.fullmatch(text) else text


def in_font(text: str, is_raised: bool | None, is_struck: bool | None) -> str:
    """Raised numbers as Unicode's, struck text in Markdown's marks.

    >>> in_font("6", True, None), in_font(" old", None, True)
    ('⁶', ' ~~old~~')
    """
    if is_raised:
        text = raised(text)
    words = text.strip()
    return text.replace(words, f"~~{words}~~") if is_struck and words else text


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


# A fenced block, or the fence alone where nothing closes it.
_FENCED = re.compile(r"(?ms)^ {0,3}(`{3,}(?=[^`\n]*$)|~{3,})(?:.*?\n {0,3}\1[`~]*[ \t]*$)?")


def closed(text: str) -> str:
    r"""Markdown with its last block of code closed, so that it does not go on in what follows.

    >>> closed("Brew:\n```sh\nmake tea")
    'Brew:\n```sh\nmake tea\n```'
    """
    for block in _FENCED.finditer(text):
        if block.end() == block.end(1):
            return f"{text}\n{block[1]}"
    return text


def _is_plain_block(element: Tag) -> bool:
    """Whether the converter would write a block as if it were a word."""
    if element.name in _WORDS:
        return _BLOCK_STYLE.search(str(element.get("style") or "")) is not None
    return element.name in _PLAIN_BLOCKS


def _count(numbered: Tag) -> None:
    """Give each item of a numbered list the number that a browser shows."""
    items = numbered.find_all("li", recursive=False)
    first, step = 1, 1
    if numbered.has_attr("reversed"):
        first, step = len(items), -1
    number = _stated(numbered, "start", first)
    for item in items:
        number = _stated(item, "value", number)
        item["value"] = str(number)
        number += step


def _stated(element: Tag, name: str, otherwise: int) -> int:
    value = str(element.get(name) or "")
    return int(value) if re.fullmatch("-?[0-9]{1,9}", value) else otherwise


def _is_layout(table: Tag) -> bool:
    if table.find("table"):
        return True
    rows = list(_rows(table))
    if max(map(len, rows), default=0) < 2:
        return True
    longest = max(len(cell.get_text()) for row in rows for cell in row)
    return table.find(_BLOCKS) is not None and (len(rows) == 1 or longest > _LONG_CELL)


def _rows(table: Tag) -> Iterator[list[Tag]]:
    for row in table.find_all("tr"):
        yield row.find_all(["td", "th"], recursive=False)


def _unfold(table: Tag) -> None:
    """Make each cell a block."""
    for part in table.find_all(words("thead tbody tfoot tr td th")):
        if part.find_parent("table") is table:
            part.name = "div"
    table.name = "div"


def _fill(table: Tag) -> None:
    """Add an empty cell wherever a cell of a row above reaches down."""
    from bs4 import Tag

    reaching: Counter[int] = Counter()  # rows still covered, by column
    for cells in _rows(table):
        column = 0
        for cell in cells:
            while reaching[column]:
                cell.insert_before(Tag(name="td"))
                reaching[column] -= 1
                column += 1
            rows, columns = _number(cell, "rowspan"), _number(cell, "colspan")
            for covered in range(column, column + columns):
                reaching[covered] = rows - 1
            column += columns
        while cells and reaching[column]:
            cells[-1].parent.append(Tag(name="td"))  # type: ignore[union-attr]
            reaching[column] -= 1
            column += 1


def _number(cell: Tag, name: str) -> int:
    return max(1, min(_stated(cell, name, 1), _MOST_COLUMNS))
