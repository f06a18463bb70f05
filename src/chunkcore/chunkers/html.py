"""`html`: whole blocks of a page under their headings, packed to a target size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from chunkcore.boundaries.html import html_blocks
from chunkcore.chunkers.base import Draft, strategies
from chunkcore.chunkers.blocks import BlockChunker, pack_blocks
from chunkcore.document import Document, Span
from chunkcore.errors import OptionError
from chunkcore.tokens import TokenizedText

__all__ = ["Html"]


@strategies.register("html")
@dataclass(frozen=True, kw_only=True)
class Html(BlockChunker):
    """As many whole blocks of HTML a chunk as `size` allows, each section beginning a chunk of its own.

    Structure-based (the chunking survey). A parser of the HTML standard (justhtml) reads the page as browsers do,
    and tells where in the source each element begins. A heading (h1 to h6), wherever it stands, begins a chunk,
    alone only where nothing of what follows it fits beside it. An element over `size` is cut into those inside
    it: lists between items, tables between rows, rows between cells, what holds text at line breaks (br), then
    between sentences. Tables, their rows, `pre`, scripts and styles stay whole up to `maximum`. A chunk that
    begins inside a table has the rows of its header (`thead`, or first rows of nothing but `th`) as an extra
    span, where they fit beside its first row. What is still over the maximum is cut at lines or words, else at
    graphemes; only there can a tag be cut.

    The minimum is soft, as in `Markdown`: what is under it takes parts of the next block, or joins a neighbour.

    Metadata: ``headings``, the titles of the headings that all of the chunk stands under, outermost first.

    One pass of the parser and one of the tokenizer; time and memory grow linearly with the text. Needs the extra
    ``structure``.

    Attributes:
        size: the target, in the counter's unit; at least 1.
        minimum: what a chunk should not be under; ``0 <= minimum <= size``.
        maximum: what no chunk's own text is over; at least `size`. None: `size`.
        splitter: what cuts text: "default", "spacy", "spacy:<pipeline>", "regex:<pattern>", or a callable with a
            `name`: see `sentence_ranges`.
        heading_level: headings of level 1 to this begin a chunk, 0 to 6. With 0, none does.
        content: "source", where chunks are of the page with its markup, and nothing is lost; or "text", where they
            are of what a reader sees: a span for each piece between tags, which the chunk's text joins by
            spaces. Markup, comments, scripts, styles and templates are then in no chunk and in no size, on
            purpose. Entities are as the source has them.

    Raises:
        OptionError: an option is out of range.
        SizeError: one grapheme is over the maximum.
        MissingExtraError: justhtml is not installed.

    >>> page = "<h1>Tea</h1><p>Two kinds.</p><h2>Green</h2><p>Steam <b>it</b>.</p>"
    >>> for chunk in Html(size=20, content="text").chunk(Document("tea.html", page)):
    ...     print(chunk.metadata["headings"], chunk.text)
    ['Tea'] Tea Two kinds.
    ['Tea', 'Green'] Green Steam it .
    """

    separator: ClassVar[str] = " "

    heading_level: int = 6
    content: Literal["source", "text"] = "source"

    def validate(self) -> None:
        super().validate()
        if not 0 <= self.heading_level <= 6:
            raise OptionError(f"heading_level is 0 to 6, got {self.heading_level}")

    def draft(self, source: TokenizedText, document: Document | None) -> list[Draft]:
        blocks, seen = html_blocks(source.text, only_text=self.content == "text")
        if seen is None:
            packed = pack_blocks(source, blocks, self, opening=self.heading_level)
            return [Draft(chunk.spans, {"headings": list(chunk.path)}) for chunk in packed]
        found = []
        for chunk in pack_blocks(self.token_counter.tokenize(seen.text), blocks, self, opening=self.heading_level):
            ranges = [pair for span in chunk.spans for pair in seen.spans(span.start, span.end)]
            found.append(Draft(tuple([Span(*pair) for pair in ranges]), {"headings": list(chunk.path)}))
        return found
