"""Chunkers over the blocks of a format (Markdown, HTML, code, a table), and the packer of whole blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from os.path import commonprefix
from typing import Any, Literal, NamedTuple

import numpy as np

from chunkcore.boundaries import Block, Titles, lines, table_blocks
from chunkcore.boundaries.code import LANGUAGES, code_blocks
from chunkcore.boundaries.formats import document_language, format_of
from chunkcore.boundaries.html import VisibleHtml, html_blocks
from chunkcore.boundaries.markdown import markdown_blocks
from chunkcore.boundaries.sentences import Splitter, check_splitter, sentence_ranges
from chunkcore.chunkers.base import Chunker, Draft, chunkers, get_chunker
from chunkcore.errors import OptionError, echo
from chunkcore.options import Bounds
from chunkcore.packing import join_small, split_to_maximum, trim
from chunkcore.spans import Range, as_table
from chunkcore.text import Span, text_of_spans
from chunkcore.tokens import TokenizedText

_DEPTH = 100  # deeper blocks are cut as text
_FINER: dict[str, Literal["sentences", "words"]] = {
    "lines": "sentences",
    "sentences": "words",
    "words": "words",
}


@dataclass(frozen=True, kw_only=True)
class BlockChunker(Chunker, ABC):
    """A chunker that packs the blocks of a format.

    Attributes:
        size: the target, in the counter's unit; at least 1.
        minimum: a smaller chunk takes parts of the next block or joins a neighbour; ``0 <= minimum <= size``.
        maximum: no chunk's own text is over it; at least `size`. None: `size`.
        splitter: cuts prose into sentences, as in `Sentence`.
    """

    bounded = True

    size: int = 200
    minimum: int = 0
    maximum: int | None = None
    splitter: Splitter = "default"
    bounds = Bounds(size=1, minimum=(0, "size"), maximum="size")

    def validate(self) -> None:
        check_splitter(self.splitter)


@dataclass(frozen=True, kw_only=True)
class HeadingChunker(BlockChunker, ABC):
    """A chunker over the blocks of a format that has headings.

    Attributes:
        heading_level: headings of level 1 to this begin a chunk, 0 to 6. With 0, none does.
    """

    heading_level: int = 6
    bounds = Bounds(heading_level=(0, 6))

    def cut(self, source: TokenizedText) -> list[Draft]:
        packed = _Packer(source, self, opening=self.heading_level).pack(self.blocks(source))
        return [Draft(chunk.spans, {"headings": list(chunk.path)}) for chunk in packed]

    @abstractmethod
    def blocks(self, source: TokenizedText) -> list[Block]:
        """The blocks of a text, in order."""


class Packed(NamedTuple):
    """A chunk of blocks, `start` to `end`."""

    start: int
    end: int
    header: Range | None  # the range of the table header that it repeats
    path: Titles  # the headings or definitions around all of it
    cut: tuple[
        int, int
    ]  # strength of the cut before it: a section's is stronger than a list item's
    size: int  # its tokens

    @property
    def spans(self) -> tuple[Span, ...]:
        span = Span(self.start, self.end)
        return (Span(*self.header), span) if self.header else (span,)


class _Unit(NamedTuple):
    """A block to pack: `after` is the end of the block before it, `joined` counts the white space between them."""

    block: Block
    after: int
    alone: int
    joined: int
    depth: int

    @property
    def is_last_resort(self) -> bool:
        """Cut only for the maximum, as a sentence is."""
        return self.block.whole or (self.block.parts is None and self.block.text == "words")


@dataclass
class _Packer:
    """Packs blocks in order, as many in a chunk as the target allows. They cover the text except white space.

    A block over the target is cut into its inner blocks, a `whole` block only over the maximum. Blocks without inner
    blocks are cut into sentences or lines, a long line into sentences, these into words, then graphemes. A leading
    block (a heading) stays with the next block if a piece of that fits. A chunk that begins inside a table repeats the
    table's header if it fits. Blocks of level 1 to `opening` begin a chunk; with `apart`, so does the block after a cut
    block.

    State: the growing chunk (`units`, `size`, `header`), and the units after it, next one last (`waiting`).
    """

    source: TokenizedText
    chunker: BlockChunker
    opening: int = 0
    apart: bool = False
    waiting: list[_Unit] = field(default_factory=list)
    units: list[_Unit] = field(default_factory=list)
    size: int = 0
    header: Range | None = None
    packed: list[Packed] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.maximum: int = self.chunker.hard_maximum

    def pack(self, blocks: Sequence[Block]) -> list[Packed]:
        self._wait(blocks, 0, 0)
        while self.waiting:
            unit = self.waiting.pop()
            size, header = self._with(unit)
            begins = self.apart and bool(self.units) and unit.depth < self.units[0].depth
            if 0 < unit.block.level <= self.opening:
                begins = not self._is_bare
            if not begins and self._takes(unit, size):
                self.units.append(unit)
                self.size = size
                self.header = header
            elif not begins and self._is_open_to_parts(unit):
                self._wait(self._smaller(unit), unit.after, unit.depth + 1)
            else:
                self.waiting.append(unit)
                self._close()
            if self.units and not self.waiting:
                self._close()
        return self._joined()

    def _wait(self, blocks: Sequence[Block], after: int, depth: int) -> None:
        starts, ends = as_table([(block.start, block.end) for block in blocks]).T
        before = np.append(after, ends[:-1])[: len(ends)]
        alone, joined = self.source.counts(starts, ends), self.source.counts(before, ends)
        # A single code point is a chunk, though over the maximum.
        alone[(ends - starts == 1) & (alone > self.maximum)] = self.maximum
        numbers = (before.tolist(), alone.tolist(), joined.tolist())
        units = [_Unit(*unit, depth) for unit in zip(blocks, *numbers, strict=True)]
        self.waiting += units[::-1]

    @property
    def _is_bare(self) -> bool:
        return all(unit.block.leads for unit in self.units)

    def _with(self, unit: _Unit) -> tuple[int, Range | None]:
        """The chunk's approximate size with the unit, and the header it would repeat."""
        if self.units:
            return self.size + unit.joined, self.header
        header = unit.block.header
        last = self.packed[-1].spans[0].start if self.packed else 0
        if header and last <= header[0]:  # else chunks were out of order
            size = self.count(unit.block.start, unit.block.end, header)
            if size <= self.maximum:
                return size, header
        return unit.alone, None

    def _takes(self, unit: _Unit, size: int) -> bool:
        if size <= self.chunker.size:
            return True
        keeps = unit.is_last_resort or unit.alone <= self.chunker.size
        return keeps and size <= self.maximum and self._is_bare

    def _is_open_to_parts(self, unit: _Unit) -> bool:
        """Cut the unit for the growing chunk: one that is bare or under the minimum."""
        if unit.is_last_resort and unit.alone <= self.maximum:
            return False
        return self._is_bare or self.size < self.chunker.minimum

    def _smaller(self, unit: _Unit) -> Sequence[Block]:
        block = unit.block
        parts = block.parts() if block.parts and unit.depth < _DEPTH else None
        if parts:
            return parts
        if block.text == "sentences":
            text = self.source.text[block.start : block.end]
            ranges = (sentence_ranges(text, self.chunker.splitter) + block.start).tolist()
        elif block.text == "lines":
            ranges = lines(self.source.text, (block.start, block.end))
        else:
            ranges = split_to_maximum(self.source, block.start, block.end, self.maximum)
        part = block._replace(whole=block.text == "lines", parts=None, text=_FINER[block.text])
        return [part._replace(start=start, end=end) for start, end in ranges]

    def _close(self) -> None:
        """Make a chunk of the units; surplus units and leading ones at the end wait again."""
        keep = self._without_leads(len(self.units)) if self.waiting else len(self.units)
        size, step = self._size(keep), 1
        while keep > 1 and size > self.maximum:
            keep = self._without_leads(max(1, keep - step))
            size, step = self._size(keep), 2 * step
        kept = self.units[:keep]
        first, last = kept[0], kept[-1].block
        bodies = [unit for unit in kept if not unit.block.leads]
        path = _common([unit.block.path for unit in bodies or kept])
        level = first.block.level
        strength = self.opening + 1 - level if 0 < level <= self.opening else 0
        self.packed.append(
            Packed(first.block.start, last.end, self.header, path, (strength, -first.depth), size)
        )
        self.waiting += self.units[keep:][::-1]
        self.units, self.size, self.header = [], 0, None

    def _without_leads(self, keep: int) -> int:
        """How many of the first units remain without leading ones at their end; all, if all lead."""
        left = keep
        while left and self.units[left - 1].block.leads:
            left -= 1
        return left or keep

    def _size(self, keep: int) -> int:
        return self.count(self.units[0].block.start, self.units[keep - 1].block.end, self.header)

    def count(self, start: int, end: int, header: Range | None) -> int:
        """Tokens of a chunk's own text."""
        if header is None:
            return self.source.count(start, end)
        text = text_of_spans(self.source.text, (Span(*header), Span(start, end)))
        return self.source.counter.count(text)

    def _joined(self) -> list[Packed]:
        """Chunks under the minimum join the neighbour across the weaker cut."""
        packed = self.packed

        def together(first: int, last: int) -> int:
            return self.count(packed[first].start, packed[last - 1].end, packed[first].header)

        sizes, cuts = [chunk.size for chunk in packed], [chunk.cut for chunk in packed]
        joined = []
        for first, last in join_small(sizes, cuts, self.chunker.minimum, self.maximum, together):
            path = _common([chunk.path for chunk in packed[first:last]])
            joined.append(packed[first]._replace(end=packed[last - 1].end, path=path))
        return joined


def _common(paths: Sequence[Titles]) -> Titles:
    return tuple(commonprefix(paths))  # noqa: RUF071 - of tuples, not of strings


@chunkers.register("markdown")
@dataclass(frozen=True, kw_only=True)
class Markdown(HeadingChunker):
    r"""As many whole blocks of Markdown in a chunk as `size` allows; each section begins a chunk.

    Structure-based (the chunking survey). A CommonMark parser, with GitHub's tables and front matter, finds the blocks.
    A heading begins a chunk and stays with what follows if a piece of that fits. A block over `size` is cut: a list
    between items, an item or a quote between its blocks, a paragraph between sentences. Code, HTML and tables stay
    whole up to `maximum`, then are cut between lines and rows, HTML tables too. A chunk that begins inside a table
    repeats the table's header as an extra span if it fits. The last resort is cuts at words, then graphemes.

    The minimum is soft: a smaller chunk takes parts of the next block, or joins the neighbour across the weaker cut. A
    higher heading is a stronger cut. Metadata: ``headings``, the titles above all of the chunk, outermost first. Linear
    time and memory.

    >>> from chunkcore import Document
    >>> chunker = Markdown(size=12, counter="words")
    >>> for chunk in chunker.chunk(Document("notes.md", "# Tea\n\nTwo kinds.\n\n## Green\n\nSteam it.\n\n- Sencha\n")):
    ...     print(chunk.metadata["headings"], repr(chunk.text))
    ['Tea'] '# Tea\n\nTwo kinds.'
    ['Tea', 'Green'] '## Green\n\nSteam it.\n\n- Sencha'
    """

    def blocks(self, source: TokenizedText) -> list[Block]:
        return markdown_blocks(source.text)


@chunkers.register("html")
@dataclass(frozen=True, kw_only=True)
class Html(HeadingChunker):
    r"""As many whole blocks of HTML in a chunk as `size` allows; each section begins a chunk.

    Structure-based (the chunking survey). justhtml parses the page as browsers do. A heading (h1 to h6) begins a chunk
    and stays with what follows if a piece of that fits. An element over `size` is cut into its inner elements: lists
    between items, tables between rows, rows between cells, text at br, then between sentences. Tables, rows, `pre`,
    scripts and styles stay whole up to `maximum`. A chunk that begins inside a table has its header rows as extra
    spans if they fit. Only the last resort, cuts at lines, words or graphemes, can cut a tag.

    As by every chunker, a document that says or shows that it is HTML (`is_html` of `chunkcore.reading.visible`) is cut
    as a reader sees it, a span for each piece between tags, with entities as in the source; another text with its
    markup. A page that was read from a file is Markdown, and cut as such. The minimum is soft, as in `Markdown`.
    Metadata: ``headings``, the titles above all of the chunk, outermost first. Linear time and memory. Needs the extra
    ``structure``.

    >>> from chunkcore import Document
    >>> page = "<h1>Tea</h1><p>Two kinds.</p><h2>Green</h2><p>Steam <b>it</b>.</p>"
    >>> for chunk in Html(size=20).chunk(Document("tea.html", page)):
    ...     print(chunk.metadata["headings"], repr(chunk.text))
    ['Tea'] 'Tea\nTwo kinds.'
    ['Tea', 'Green'] 'Green\nSteam it.'
    >>> Html(size=20).split_text("<p>Tea <b>is</b> hot.</p>")
    ['<p>Tea <b>is</b> hot.</p>']
    """

    def blocks(self, source: TokenizedText) -> list[Block]:
        document = source.document
        if document is not None and document.metadata.get("format") == "markdown":
            return markdown_blocks(source.text)
        page = _page_of(source)
        return html_blocks(source.text) if page is None else page.blocks()


def _page_of(source: TokenizedText) -> VisibleHtml | None:
    """The page of HTML of which this is what a reader sees; else None."""
    seen = getattr(source.document, "seen", None)
    return seen if isinstance(seen, VisibleHtml) else None


@chunkers.register("code")
@dataclass(frozen=True, kw_only=True)
class Code(BlockChunker):
    r"""As many whole definitions of source code in a chunk as `size` allows.

    Structure-based (the chunking survey). tree-sitter finds definitions and statements in C, C++, Go, Java, JavaScript,
    Python, Rust and TypeScript (with JSX). Comments, attributes and decorators stay with the definition after them,
    unless a blank line is between. A definition stays whole up to `maximum`, then is cut: a class into methods, a
    method into statements, then lines, words, graphemes. JSON is cut between elements, XML between tags, TOML and INI
    before sections; other languages at blank lines before unindented lines, then by indents, then between lines.
    Nothing is lost, also in code with errors.

    Metadata: ``language`` (of `LANGUAGES`, or "other"), ``scope`` (the definitions around the chunk, outermost first),
    and ``fallback`` "blank lines" if the grammar does not fit the text. Linear time and memory. Needs the extra
    ``structure``.

    Attributes:
        splitter: unused; all chunkers over blocks have it.
        language: the name of a language, or "auto": by the document's metadata (``language``, or a file's name under
            ``file_path``, ``file_name``, ``filename``, ``path``, ``source`` or ``url``), else its id. ".h" files are
            read as C++.

    >>> from chunkcore import Document
    >>> source = "class Tea:\n    def brew(self):\n        return 'hot'\n\n    def pour(self):\n        pass\n"
    >>> for chunk in Code(size=8, counter="words").chunk(Document("tea.py", source)):
    ...     print(chunk.metadata["scope"], repr(chunk.text))
    ['class Tea', 'def brew'] "class Tea:\n    def brew(self):\n        return 'hot'"
    ['class Tea', 'def pour'] '    def pour(self):\n        pass'
    """

    language: str = "auto"

    def validate(self) -> None:
        super().validate()
        if self.language != "auto" and self.language not in LANGUAGES:
            raise OptionError(
                f"language is auto or one of {', '.join(sorted(LANGUAGES))}; got {echo(self.language)}. "
                'For a language that is not listed, give "other"'
            )

    def cut(self, source: TokenizedText) -> list[Draft]:
        language = self.language
        if language == "auto":
            language = (document_language(source.document) if source.document else None) or "other"
        details = {"language": language}
        blocks = code_blocks(source.text, language)
        if blocks is None:
            blocks = code_blocks(source.text, "other") or []
            details["fallback"] = "blank lines"
        packed = _Packer(source, self, apart=True).pack(blocks)
        return [Draft(chunk.spans, {**details, "scope": list(chunk.path)}) for chunk in packed]


@chunkers.register("auto")
@dataclass(frozen=True, kw_only=True)
class Auto(BlockChunker):
    r"""Picks a chunker for each document by its length and its format.

    A document of at most `size` is one chunk. Others are cut as by `Markdown`, `Html`, `Code` or, prose, `Sentence`;
    CSV and TSV files by rows, each chunk with the header (the chunking survey: match the structure).
    The format comes from the metadata, the file name, or (no code) the first 20,000 code points: see
    `chunkcore.boundaries.formats.format_of`. HTML and code need the extra ``structure``.

    Metadata: ``chunker`` ("whole", "markdown", "html", "code", "table" or "sentence"), and that chunker's own.

    >>> from chunkcore import Document
    >>> chunker = Auto(size=3, counter="words")
    >>> [(chunk.text, chunk.metadata) for chunk in chunker.chunk(Document("tea.md", "# Tea\n\nGreen.\n\n# Coffee\n"))]
    [('# Tea\n\nGreen.', {'chunker': 'markdown', 'headings': ['Tea']}),
     ('# Coffee', {'chunker': 'markdown', 'headings': ['Coffee']})]
    >>> chunker.chunk(Document("note", "Two words."))[0].metadata
    {'chunker': 'whole'}
    """

    def cut(self, source: TokenizedText) -> list[Draft]:
        text = source.text
        start, end = trim(text, 0, len(text))
        if start == end:
            return []
        if source.count(start, end) <= self.size:
            return [Draft((Span(start, end),), {"chunker": "whole"})]
        kind, language = format_of(text, source.document)
        if _page_of(source) is not None:
            kind = "html"
        if kind == "table":
            packed = _Packer(source, self).pack(table_blocks(text))
            return [Draft(row.spans, {"chunker": kind}) for row in packed]
        options: dict[str, Any] = {
            name: getattr(self, name) for name in BlockChunker.option_names()
        }
        if kind == "code":
            options["language"] = language
        name = "sentence" if kind == "prose" else kind
        return [
            draft._replace(metadata={"chunker": name, **draft.metadata})
            for draft in get_chunker(name, **options).drafts(source)
        ]
