"""The blocks of an HTML text, as exact ranges of the source, by a parser of the HTML standard."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise, takewhile
from operator import itemgetter
from typing import Any

from chunkcore.boundaries import Block, Pieces, Titles, between, one_line, words
from chunkcore.lazy import needed
from chunkcore.spans import Range, trim
from chunkcore.text import Span, joiner, offsets_of_spans, text_of_spans

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
BLOCK_TAGS = words(
    """address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure
    footer form frameset head header hgroup hr html legend li listing main menu nav noscript ol optgroup option p
    plaintext pre script search section select style summary table tbody td template textarea tfoot th thead title
    tr ul xmp""",
    *_HEADINGS,
)
_UNREAD = words("script style template")
UNSEEN = _UNREAD | words(
    "annotation annotation-xml audio canvas embed head iframe nav noscript object video"
)
_LEADING = words("dt summary legend caption", *_HEADINGS)
_PLAIN_CELL = frozenset(("", "td", "p", "div"))
_LINES = words("pre listing plaintext textarea xmp script style template")
# Tags inside are text.
_RAW = words("title textarea xmp plaintext noframes iframe")
# Between a text and the next node: end tags and ignored markup.
_MARKUP = re.compile(r"</?[A-Za-z][^>]*>|<![^>]*>|<\?[^>]*>|</[^>]*>")
_END_TAG = re.compile(r"</[A-Za-z][^>]*>")
_BLANK, _SPACES = re.compile(r"\s*[\r\n]"), re.compile(r"\s*")
UNREAD = re.compile(
    r"(?is)<(script|style|template)\b[^<>]*(?<!/)>.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)"
)
_TAG = re.compile(rf"{UNREAD.pattern}|<(?P<end>/?)(?P<name>[a-z][^\s<>/]*)(?P<attributes>[^<>]*)>")
_ATTRIBUTE = re.compile(r"([^\s\"'=/]+)(?:\s*=\s*(\"[^\"]*\"|'[^']*'|[^\s\"']+))?")
_HIDING = re.compile(r"(?i)\bhidden\b|display\s*:\s*none")
_HIDING_STYLE = re.compile(r"(?i)display\s*:\s*none|visibility\s*:\s*hidden")
# Formulas that <math> has, too; what stands beside headings and lines for a mouse: links to them, "edit", line numbers.
_UNREAD_CLASS = re.compile(r"(?<![\w-])(?:katex-html|headerlink|mw-editsection)(?![\w-])")
_LINE_NUMBERS = re.compile(r"(?<![\w-])(?:linenos?|rouge-gutter|hljs-ln-numbers)(?![\w-])")
_ON_CLICK = re.compile("tabpanel|footnote|endnote|rearnote")
_VOID = words("area base br col embed hr img input link wbr")
# Tags of XHTML that close their elements at once, as HTML does not: but where HTML ends them at the next one.
_CLOSED = re.compile(rf"(?i)<(?!(?:{'|'.join(sorted(_VOID))}|td|th|li|p)\b)([a-z][^<>]*)/>")
_PICTURE = re.compile(r"(?<=;base64,)[A-Za-z0-9+/=\s%]{200,}(?![A-Za-z0-9+/=])")
ANCHORS = frozenset("¶#§◆\u200b\U0001f517")  # texts of links to a heading, beside its title
_TITLE = 50  # nodes of a heading read for its title
_NUMBER = re.compile(r"&#[xX]?\w+")
_OTHER = re.compile(r"[^\x00-\x7f]")
_XHTML = re.compile(r"<\?xml|xmlns=.http://www\.w3\.org/1999/xhtml")
_FORMATTING = re.compile(
    r"(?i)<(/?)(?:a|b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)\b[^<>]*>"
)
_MOST_OPEN = 32  # of formatting elements: the HTML standard opens all of them anew in each block, so n x n nodes


@dataclass(slots=True)
class _Element:
    """A block-level element, or (without a tag) a run of text and inline elements between two."""

    tag: str
    start: int
    last: int = 0  # start of the last node inside
    title: str = ""
    children: list[_Element] = field(default_factory=list)
    has_heading: bool = False
    is_running: bool = False

    def begin_run(self, place: int) -> None:
        self.last = max(self.last, place)
        if not self.is_running:
            self.children.append(_Element("", place, place))
            self.is_running = True

    def in_order(self) -> list[_Element]:
        """The children in source order. Nodes that the parser moved out of a table stay in the table."""
        elements: list[_Element] = []
        for child in sorted(self.children, key=lambda child: child.start):
            if not elements or child.start > max(elements[-1].start, elements[-1].last):
                elements.append(child)
        return elements


class HtmlText:
    """The visible text of a page: that of its `pieces`, the ranges of texts between tags, stripped but in <pre>."""

    def __init__(self, source: str, pieces: list[Range]) -> None:
        spans = [Span(start, end) for start, end in pieces]
        self.text = text_of_spans(source, spans)
        self.pieces = pieces
        self._ends = [end for _, end in pieces]
        self._places = [*offsets_of_spans(source, spans), len(self.text)]

    def place(self, offset: int) -> int:
        """Convert a source offset to an offset into `text`; inside markup, that of the next piece."""
        number = bisect_right(self._ends, offset)
        if number == len(self.pieces):
            return len(self.text)
        return self._places[number] + max(0, offset - self.pieces[number][0])

    def spans(self, start: int, end: int) -> Iterator[Span]:
        """Where ``text[start:end]`` stands in the source."""
        first = bisect_right(self._places, start) - 1
        for number in range(first, bisect_left(self._places, end)):
            begin, stop = self.pieces[number]
            shift = begin - self._places[number]
            low, high = max(begin, start + shift), min(stop, end + shift)
            if low < high:
                yield Span(low, high)


def html_blocks(text: str) -> list[Block]:
    """The blocks of an HTML text; they cover all text except white space, tags included. Linear time and memory.

    Headings set the path of the following blocks. An element that contains a heading is replaced by its children.
    Broken pages are read as browsers read them.

    Raises `MissingExtraError`: justhtml is not installed.

    >>> blocks = html_blocks("<h1>Tea</h1><p>Two <b>kinds</b>.")
    >>> [(block.start, block.end, block.path) for block in blocks]
    [(0, 12, ('Tea',)), (12, 32, ('Tea',))]
    """
    root, _ = _read(text, only_text=False)
    return _Reader(text, int).top(root)


class VisibleHtml(HtmlText):
    """The visible text of a page, which is read once for it and its blocks. Raises as `html_blocks`."""

    def __init__(self, source: str) -> None:
        self.tree, pieces = _read(source, only_text=True)
        super().__init__(source, pieces)

    def blocks(self) -> list[Block]:
        """The page's blocks, as ranges of the visible text."""
        return _Reader(self.text, self.place).top(self.tree)


def visible_pieces(text: str) -> list[Range]:
    """The ranges of the texts between tags that a reader sees. Raises `MissingExtraError`: justhtml is not installed.

    >>> visible_pieces("<p>Tea <b>is</b><script>x</script>")
    [(3, 6), (10, 12)]
    """
    pieces = [trim(text, *piece) for piece in _read(text, only_text=True)[1]]
    return [(start, end) for start, end in pieces if start < end]


@dataclass
class _Reader:
    """Turns elements into blocks; `place` maps source offsets to offsets into the text."""

    text: str
    place: Callable[[int], int]

    def top(self, root: _Element) -> list[Block]:
        # A text of end tags alone has no elements.
        rows = list(_without_holders(root)) or [(root, 0)]
        ranges = self.ranges([start for _, start in rows[1:]], (0, len(self.text)))
        titles: dict[str, str] = {}  # of the headings around, by their tags
        blocks = []
        for (element, _), kept in zip(rows, ranges, strict=True):
            level = _HEADINGS.get(element.tag, 0)
            if level:
                titles = {tag: title for tag, title in titles.items() if tag < element.tag}
                titles[element.tag] = element.title
            if kept:
                blocks.append(self.block(element, kept, tuple(titles.values()), level))
        return blocks

    def ranges(self, starts: Sequence[int], around: Range) -> list[Range | None]:
        cuts = [min(self.place(start), around[1]) for start in starts]
        return between(self.text, around, cuts)

    def blocks(self, elements: Sequence[_Element], around: Range, path: Titles) -> list[Block]:
        ranges = self.ranges([element.start for element in elements[1:]], around)
        pairs = zip(elements, ranges, strict=False)
        return [self.block(element, kept, path) for element, kept in pairs if kept]

    def block(self, element: _Element, kept: Range, path: Titles, level: int = 0) -> Block:
        parts: Callable[[], Sequence[Block]] | None = None
        if element.tag == "table" and element.children:
            parts = partial(self.rows, element, kept, path)
        elif len(element.children) > 1 or any(child.tag for child in element.children):
            parts = partial(self.blocks, element.in_order(), kept, path)
        is_lines = element.tag in _LINES
        inner: Pieces = "lines" if is_lines else "sentences"
        return Block(
            *kept,
            path,
            whole=level > 0 or is_lines or element.tag in ("table", "tr"),
            leads=element.tag in _LEADING,
            level=level,
            parts=parts,
            text=inner,
        )

    def rows(self, table: _Element, around: Range, path: Titles) -> list[Block]:
        """The table's header with the text before it, then its rows, each with the header's range."""
        rows = list(_rows(table))
        heads = len(list(takewhile(itemgetter(2), rows)))
        if not heads and _begins_with_header([row for row, _, _ in rows]):
            heads = 1
        if heads in (0, len(rows)):
            return self.blocks(table.in_order(), around, path)
        elements, starts, _ = zip(*rows[heads:], strict=True)
        first, *ranges = self.ranges(starts, around)
        if first is None:
            return self.blocks(elements, around, path)
        header = between(self.text, (self.place(rows[0][1]), first[1]), [])[0] or first
        blocks = [Block(*first, path, whole=True, leads=True)]
        for row, kept in zip(elements, ranges, strict=True):
            if kept:
                cells = partial(self.blocks, row.in_order(), kept, path)
                parts = cells if len(row.children) > 1 else None
                blocks.append(Block(*kept, path, whole=True, header=header, parts=parts))
        return blocks


def _without_holders(root: _Element) -> Iterator[tuple[_Element, int]]:
    """Headings and the largest elements without a heading, in order, each with its range's start."""
    waiting = [(root, root.start)]
    while waiting:
        element, start = waiting.pop()
        children = element.in_order() if element.has_heading or element is root else []
        if children:
            places = [start, *(child.start for child in children[1:])]
            waiting.extend([*zip(children, places, strict=True)][::-1])
        elif element is not root:
            yield element, start


def _rows(table: _Element) -> Iterator[tuple[_Element, int, bool]]:
    """The rows, each with its start (a first row's is its section's) and whether it is a header."""
    for child in table.in_order():
        inside = child.in_order() if child.tag in ("thead", "tbody", "tfoot") else [child]
        for number, row in enumerate(row for row in inside if row.tag == "tr"):
            only_th = {"th"} == {cell.tag for cell in row.children if cell.tag}
            yield row, row.start if number else child.start, only_th or child.tag == "thead"


def _begins_with_header(rows: Sequence[_Element]) -> bool:
    """Whether the first row of a table without <th> heads it: of plain cells, as many as each of the next two has."""
    cells = [[cell for cell in row.children if cell.tag] for row in rows[:3]]
    sizes = set(map(len, cells))
    if len(cells) < 3 or len(sizes) > 1 or sizes <= {0, 1}:
        return False
    tags = {cell.tag for cell in cells[0]}
    tags.update(part.tag for cell in cells[0] for part in cell.children)
    return tags <= _PLAIN_CELL


def _read(text: str, *, only_text: bool) -> tuple[_Element, list[Range]]:
    root = _Element("", 0)
    seen = {}  # start of each visible text: the tag around it
    marks = []  # starts of nodes
    inside = [(root, iter(parse_html(text).children), "")]
    while inside:
        owner, nodes, parent = inside[-1]
        node = next(nodes, None)
        if node is None:
            inside.pop()
            around = inside[-1][0] if inside else root
            around.last = max(around.last, owner.last)
            around.has_heading |= owner.has_heading
            continue
        name, place = node.name, node.origin_offset
        if place is not None:
            marks.append(place)
        if name == "#text":
            if place is not None and (parent == "pre" or node.data.strip()):
                owner.begin_run(place)
                seen[place] = parent
        elif not name.startswith(("#", "!")):
            if only_text and (name in UNSEEN or is_hidden(name, node.attrs or {})):
                continue
            owner.has_heading |= name in _HEADINGS and place is not None
            within = _enter(owner, node)
            if name not in _UNREAD:
                # Spans that colour code are as the <pre> around them.
                keeps = parent == "pre" and name not in _RAW
                inside.append((within, iter(node.children), parent if keeps else name))
    if not only_text:
        return root, []
    return root, parts_without_pictures(text, _pieces(text, seen, marks))


def parts_without_pictures(text: str, pieces: Iterable[Range]) -> list[Range]:
    """The ranges of a text without the pictures as base64 in them; in HTML they are text if their tag is unclosed."""
    parts: list[Range] = []
    for piece in pieces:
        pictures = (match.span() for match in _PICTURE.finditer(text, *piece))
        parts += _outside(pictures, *piece)
    return parts


def _outside(ranges: Iterable[Range], start: int, end: int) -> Iterator[Range]:
    """What is left of a range between others, which are in order."""
    for begin, stop in ranges:
        if start < begin:
            yield start, begin
        start = stop
    if start < end:
        yield start, end


def _enter(owner: _Element, node: Any) -> _Element:
    """The element that owns a node's children: the node itself if it is a block in the source."""
    name, place = node.name, node.origin_offset
    if place is None:
        return owner
    if name not in BLOCK_TAGS:
        owner.begin_run(place)
        owner.is_running = name != "br"
        return owner
    title = _title(node) if name in _HEADINGS else ""
    element = _Element(name, place, place, title=title)
    owner.children.append(element)
    owner.is_running = False
    return element


def _title(heading: Any) -> str:
    words, waiting = [], [heading]
    for _ in range(_TITLE):
        if not waiting:
            break
        node = waiting.pop()
        if node.name == "#text":
            if node.parent.name != "a" or node.data.strip() not in ANCHORS:
                words.append(node.data)
        elif not is_hidden(node.name, node.attrs or {}):
            if node.name == "br" or node.name in BLOCK_TAGS:
                words.append(" ")
            waiting.extend(reversed(getattr(node, "children", None) or []))
    return one_line("".join(words))


def _pieces(text: str, seen: dict[int, str], marks: list[int]) -> Iterator[Range]:
    last = text.rfind(">") + 1  # no markup ends after it, so the search stays linear
    before = 0
    for start, end in pairwise([*sorted(set(marks)), len(text)]):
        if start not in seen:
            continue
        parent = seen[start]
        pattern = _END_TAG if parent in _RAW else _MARKUP
        tags = (match.span() for match in pattern.finditer(text, start, min(end, last)))
        for low, high in _outside(tags, start, end):
            if parent == "pre":
                low = _indented(text, before, low, high)
            else:
                low, high = trim(text, low, high)
            if low < high:
                yield low, high
                before = high


def _indented(text: str, before: int, start: int, end: int) -> int:
    """Where a piece of code begins: with the indent of its line, else after spaces, for which its joiner stands."""
    blank = _BLANK.match(text, start, end)
    if blank:
        start = blank.end()
    if before and text[before - 1] not in "\r\n" and joiner(text, before, start) != "\n":
        start = _SPACES.match(text, start, end).end()  # type: ignore[union-attr]
    return start


def is_hidden(name: str, attributes: Mapping[str, Any]) -> bool:
    """Whether an element says itself that browsers do not show it, or is no part of what is read, such as line numbers.

    They show no <rp> where they know <ruby>, and no dialog before it is opened.
    """
    is_closed = name == "dialog" and "open" not in attributes
    kind = f"{attributes.get('role')} {attributes.get('epub:type')}"
    if _ON_CLICK.search(kind):
        return False
    if name == "rp" or is_closed or "hidden" in attributes:
        return True
    classes, style = (str(attributes.get(key) or "") for key in ("class", "style"))
    is_number = name in ("td", "span") and _LINE_NUMBERS.search(classes)
    # Of line numbers alone, not among other classes of code.
    is_gutter = name == "pre" and classes.strip("[']") in ("lineno", "linenos")
    is_apart = is_number or is_gutter or "pagebreak" in kind or _UNREAD_CLASS.search(classes)
    return bool(is_apart or _HIDING_STYLE.search(style))


def hidden_ranges(text: str) -> Iterator[Range]:
    """Where hidden elements (`is_hidden`) stand in HTML, without a parser. One that is not closed hides nothing.

    >>> list(hidden_ranges("<p hidden>Tea</p><p>hot"))
    [(0, 17)]
    """
    tags = _TAG.finditer(text)
    for tag in tags:
        name = (tag["name"] or "").lower()
        if not name or tag["end"]:
            continue
        if name == "rp":
            end = text.find("<", tag.end())
            yield tag.start(), len(text) if end < 0 else end
            continue
        attributes = tag["attributes"]
        is_closed = name in _VOID or attributes.endswith("/")
        if not is_closed and (name == "dialog" or _HIDING.search(attributes)):
            pairs = {key.lower(): value for key, value in _ATTRIBUTE.findall(attributes)}
            end = _end_of(name, tags) if is_hidden(name, pairs) else 0
            if end:
                yield tag.start(), end


def _end_of(name: str, tags: Iterable[re.Match[str]]) -> int:
    """Where an element ends whose tags, after the one that begins it, are next; 0: nowhere."""
    depth = 1
    for tag in tags:
        if (tag["name"] or "").lower() == name and not tag["attributes"].endswith("/"):
            depth += -1 if tag["end"] else 1
            if not depth:
                return tag.end()
    return 0


def parse_html(text: str, *, places: bool = True) -> Any:
    """The root of justhtml's tree. Raises `MissingExtraError` without justhtml.

    With `places`, nodes have an ``origin_offset``, and declarations such as Outlook's ``<![if !supportLists]>`` are in
    the texts; else they are comments. Formatting tags over 32 open ones are not parsed, so that nested ones take linear
    time.
    """
    justhtml = needed("justhtml", "structure", "read HTML")
    if _XHTML.search(text, 0, 1000):
        text = _CLOSED.sub(lambda match: f"<!{' ' * len(match[1])}>", text)
    # justhtml raises an error for non-ASCII digits in a character reference; HTML ignores them.
    readable = _NUMBER.sub(lambda match: _OTHER.sub("\ufffd", match[0]), _without_excess(text))
    return justhtml.JustHTML(
        readable, sanitize=False, track_node_locations=places, scripting_enabled=False
    ).root


def _without_excess(text: str) -> str:
    """The text with spaces in place of the formatting tags over those that may be open."""
    count = 0

    def kept(tag: re.Match[str]) -> str:
        nonlocal count
        before = count
        count = max(0, count - 1) if tag[1] else count + 1
        return tag[0] if max(before, count) <= _MOST_OPEN else " " * len(tag[0])

    return _FORMATTING.sub(kept, text)
