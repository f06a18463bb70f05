"""The blocks of a Markdown text, as exact ranges of the source, by a CommonMark parser."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from chunkcore.boundaries import Block, Pieces, Titles, between, one_line, words
from chunkcore.spans import Range

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token

_LINE_END = re.compile(r"\r\n?|\n")
_MARK_BEFORE_TEXT = re.compile(r"\A\ufeff(?=[ \t]*\S)")
# The second line must look like YAML or TOML: the first may be a thematic break.
_FRONT = re.compile(
    r"\ufeff?(?:---|\+\+\+)[ \t]*(?:\r\n?|\n)(?=\s*(?:---|\+\+\+|\.\.\.|#|[\"']?\w[^\s:=]*[\"']?\s*[:=]))"
)
_FRONT_END = re.compile(r"(?:(?<=\n)|(?<=\r))(?:---|\+\+\+|\.\.\.)[ \t]*(?:\r\n?|\n|\Z)")
_TABLE_TAG = re.compile(r"(?i)<(?P<end>/?)(?P<name>table|tr)\b")
_TABLE = re.compile(r"(?is)<table\b.*?<tr\b")
_CELL = re.compile(r"(?i)<td\b")
_HTML_HEADING = re.compile(r"(?is)\s*<(h[1-6])\b[^<>]*>(.*?)</\1>\s*")
_TAG = re.compile("<[^<>]*>")
# What closes a link, whose address may have parentheses.
_ADDRESS = r"\]\((?:[^()]|\([^()]*\))*\)"
# Of a heading, as in "Tea {#tea .green}": attributes, comments, tags (no types, as in "List<int>"), what marks links
# and bold words, as Google Docs writes them, but no power or "**kwargs"; and what stays: code, and signs after "\".
_UNSEEN = re.compile(
    r"(`[^`]*`)|\\([][.\-_#&!+*<>~=|])|[ \t]*\{:?[ \t]*[#.][^{}]*\}$| ?<!--[^<>]*-->|</[A-Z]\w*>"
    r"|</?(?:a|b|br|code|em|font|i|img|kbd|mark|small|span|strong|su[bp]|u)\b[^<>]*>|<[A-Z]\w* [\w:-]+=[^<>]*>"
    rf"|!?\[(?=(?:[^\[\]]|\[[^\[\]]*\])*{_ADDRESS})|{_ADDRESS}"
    r"|(?<![\w*])\*\*+(?=[^\s*](?:[^*]|\*(?!\*))*\*\*(?!\w))|(?<=[^\s*])\*\*+(?![\w*])"
)
# A line that begins a part: a tag of HTML or JSX, a fence of Pandoc or Docusaurus, a box of MkDocs, one in bold, or a
# title with a number, which is a list of one item.
_OPENS = re.compile(
    r"[ \t]*<details[^<>]*>\s*<summary[^<>]*>[^\n]*|[ \t]*(?:!!!|\?{3}\+?|===)[ \t][^\n]+|"
    r"[ \t]*(?:<[A-Za-z][^<>\n]*(?<!/)>|:{3,}[ \t]*[{\w][^\n]*|\*\*[^*\n]+\*\*:?|__[^_\n]+__:?"
    r"|\d{1,3}[.)][ \t][^\r\n]{1,99}(?<![.!;,…。]))"
)
_MATH = {"$$": "$$", "\\[": "\\]"}
_ENVIRONMENT = re.compile(
    r"\\begin(\{(?:align|displaymath|eqnarray|equation|gather|math|multline)\*?\})\Z"
)
_MAX_NESTING = 24  # levels of lists (two each) and quotes; the parser's work per line grows with it
_CONTAINERS = words("bullet_list ordered_list list_item blockquote")
_KEPT = words(
    "bullet_list_open ordered_list_open list_item_open blockquote_open table_open paragraph_open heading_open",
    "bullet_list_close ordered_list_close list_item_close blockquote_close fence code_block html_block hr math",
)


@dataclass(slots=True)
class _Node:
    kind: str
    first: int
    last: int
    level: int = 0  # of a heading outside lists and quotes
    title: str = ""
    children: list[_Node] = field(default_factory=list)


def markdown_blocks(text: str) -> list[Block]:
    r"""The blocks of a Markdown text: CommonMark, GitHub's tables, YAML or TOML front matter. Linear time and memory.

    They cover all text except white space. Headings outside lists and quotes set the path of the following blocks.
    Link reference definitions are paragraphs; text nested deeper than 12 lists is one block.

    >>> blocks = markdown_blocks("# Title\n\nText.\n")
    >>> [(block.start, block.end, block.path) for block in blocks]
    [(0, 7, ('Title',)), (9, 14, ('Title',))]
    """
    front = _FRONT.match(text)
    front_end = _FRONT_END.search(text, front.end()) if front else None
    begin = front_end.end() if front_end else 0
    body = text[begin:]
    starts = [begin, *[begin + ending.end() for ending in _LINE_END.finditer(body)]]
    reader = _Reader(text, starts)
    blocks = reader.blocks(reader.with_whole_tables(_nodes(body)), (begin, len(text)))
    (kept,) = between(text, (0, begin), [])
    if kept:
        blocks.insert(0, Block(*kept, whole=True, text="lines"))
    return blocks


@dataclass
class _Reader:
    text: str
    starts: list[int]

    def offset(self, line: int) -> int:
        return self.starts[line] if line < len(self.starts) else len(self.text)

    def with_whole_tables(self, nodes: Sequence[_Node]) -> list[_Node]:
        """The nodes; an HTML table that goes on after a blank line is one node with what it holds."""
        whole: list[_Node] = []
        depth = 0  # of open tables
        last = self.text.lower().rfind("</table")
        for node in nodes:
            if node.level or self.offset(node.first) > last:
                depth = 0
            if depth:
                whole[-1].last = node.last
            else:
                whole.append(node)
            if whole[-1].kind == "html_block":
                start, end = self.offset(node.first), self.offset(node.last)
                for mark in _TABLE_TAG.finditer(self.text, start, end):
                    if mark["name"].lower() == "table":
                        depth += -1 if mark["end"] else 1
                depth = max(0, depth)
        return whole

    def blocks(self, nodes: Sequence[_Node], around: Range, path: Titles = ()) -> list[Block]:
        """Blocks that cover the range, with the path around it."""
        ranges = between(self.text, around, (self.offset(node.first) for node in nodes[1:]))
        titles: dict[int, str] = {}  # of the headings around, by their levels
        blocks = []
        for node, kept in zip(nodes, ranges, strict=False):
            if node.level:
                titles = {level: title for level, title in titles.items() if level < node.level}
                titles[node.level] = node.title
            if kept:
                blocks.append(self.block(node, kept, (*path, *titles.values())))
        return blocks

    def block(self, node: _Node, kept: Range, path: Titles) -> Block:
        parts: Callable[[], list[Block]] | None = None
        if node.kind == "table" and node.last - node.first > 2:
            parts = partial(self.rows, node, kept, path)
        elif node.kind == "html_block" and _TABLE.search(self.text, *kept):
            parts = partial(self.html_rows, kept, path)
        elif node.children:
            parts = partial(self.blocks, node.children, kept, path)
        is_heading = node.kind == "heading"
        is_code = node.kind in ("fence", "code_block", "html_block", "table", "math")
        text: Pieces = "lines" if is_code else "sentences"
        opens = node.kind != "list_item" and _OPENS.fullmatch(self.text, *kept) is not None
        return Block(
            *kept,
            path,
            whole=is_heading or is_code,
            leads=is_heading or opens,
            level=node.level,
            parts=parts,
            text=text,
        )

    def rows(self, node: _Node, around: Range, path: Titles) -> list[Block]:
        starts = map(self.offset, range(node.first + 2, node.last))
        header, *rows = between(self.text, around, starts)
        return _table(header, rows, header, path)

    def html_rows(self, around: Range, path: Titles) -> list[Block]:
        """The rows of the HTML tables in a range; header rows lead, and text around a table stays with its rows."""
        blocks = []
        tables = _outer_tags(self.text, around, "table")
        for kept in between(self.text, around, tables[1:]):
            if kept:
                blocks += self.html_table(kept, path)
        return blocks

    def html_table(self, around: Range, path: Titles) -> list[Block]:
        places = _outer_tags(self.text, around, "tr")
        sizes = [len(_CELL.findall(self.text, *row)) for row in pairwise([*places, around[1]])]
        body = [place for place, size in zip(places, sizes, strict=True) if size]
        if len(sizes) > 2 and 1 < sizes[0] == sizes[1] == sizes[2]:
            is_headed = "<th" not in self.text[places[0] : places[1]].lower()
            body = body[is_headed:]
        if not body:
            return [Block(*around, path, whole=True, text="lines")]
        first, *rows = between(self.text, around, body)
        (header,) = between(self.text, (places[0], body[0]), [])
        return _table(first, rows, header, path)


def _table(
    first: Range | None, rows: Sequence[Range | None], header: Range | None, path: Titles
) -> list[Block]:
    """The part of a table up to its header, which leads, and the rows, which repeat the header."""
    blocks = []
    if first:
        blocks.append(Block(*first, path, whole=True, leads=True, text="words"))
    blocks += [Block(*row, path, whole=True, header=header) for row in rows if row]
    return blocks


def _outer_tags(text: str, around: Range, tag: str) -> list[int]:
    """Where tables begin that are in no other one, or their rows."""
    places = []
    depth = 0
    for mark in _TABLE_TAG.finditer(text, *around):
        name = mark["name"].lower()
        if name == "table":
            depth += -1 if mark["end"] else 1
        if name == tag and depth == 1 and not mark["end"]:
            places.append(mark.start())
    return places


def _shown(mark: re.Match[str]) -> str:
    """What a reader sees of a mark in a heading."""
    return " " if mark[0].startswith("<br") else mark[1] or mark[2] or ""


def _nodes(text: str) -> list[_Node]:
    nodes: list[_Node] = []
    inside = [nodes]
    for token in _tokens(text):
        if token.nesting < 0:
            inside.pop()
        elif token.type == "inline":
            inside[-1][-1].title = one_line(_UNSEEN.sub(_shown, one_line(token.content)))
        elif token.map:
            kind, tag, title = token.type.removesuffix("_open"), token.tag, ""
            heading = _HTML_HEADING.fullmatch(token.content)
            if kind == "html_block" and heading:
                kind, tag = "heading", heading[1]
                title = one_line(_TAG.sub("", heading[2].replace("<br", " <br")))
            sets_path = kind == "heading" and token.level == 0
            level = int(tag[1]) if sets_path else 0
            node = _Node(kind, token.map[0], token.map[1], level, title)
            inside[-1].append(node)
            if kind in _CONTAINERS:
                inside.append(node.children)
    return nodes


def _tokens(text: str) -> list[Token]:
    """The parser's block tokens; a heading's text follows its token."""
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token

    class LeanState(StateBlock):
        """Drops unused tokens: a table's cells would take hundreds of times their text's memory."""

        unused = Token("", "", 0)

        def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
            if ttype in _KEPT or (
                ttype == "inline" and self.tokens and self.tokens[-1].type == "heading_open"
            ):
                return super().push(ttype, tag, nesting)
            self.level += nesting
            return self.unused

    parser = _parser()
    # Line ends and NULs as in CommonMark; line numbers stay the same. A byte order mark hides no heading.
    clean = _LINE_END.sub("\n", text).replace("\0", "\ufffd")
    state: Any = LeanState(_MARK_BEFORE_TEXT.sub(" ", clean), parser, {}, [])
    parser.block.tokenize(state, 0, state.lineMax)
    tokens: list[Token] = state.tokens
    return tokens


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING})
    parser.enable("table").disable("reference")
    interrupted = ["paragraph", "reference", "blockquote", "list"]
    parser.block.ruler.before("fence", "math", _math, {"alt": interrupted})
    return parser


def _math(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """Rule of the parser: a formula between ``$$`` or LaTeX's brackets, or in an environment; it has no blank line."""
    opening = state.src[state.bMarks[first] + state.tShift[first] : state.eMarks[first]].strip()
    closing = _MATH.get(opening[:2])
    environment = _ENVIRONMENT.match(opening)
    if environment:
        closing = rf"\end{environment[1]}"
    if closing is None:
        return False
    last: int | None = first
    if len(opening) <= 3 or not opening.endswith(closing):
        last = _math_end(state, first, end, closing)
    if last is None:
        return False
    if not silent:
        token = state.push("math", "math", 0)
        token.map = [first, last + 1]
        state.line = last + 1
    return True


def _math_end(state: StateBlock, first: int, end: int, closing: str) -> int | None:
    """The line below that ends a formula; none before a blank line or the end, which later lines need not look for."""
    if first < state.env.get(closing, 0):
        return None
    for last in range(first + 1, end):
        line = state.src[state.bMarks[last] : state.eMarks[last]]
        if line.rstrip().endswith(closing):
            return last
        if state.isEmpty(last) or state.sCount[last] < state.blkIndent:
            end = last
            break
    state.env[closing] = end
    return None
