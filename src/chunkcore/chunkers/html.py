"""`html`: whole blocks of a page under their headings, packed to a target size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from chunkcore.boundaries.html import html_blocks
from chunkcore.chunkers.base import Draft, strategies
from chunkcore.chunkers.blocks import HeadingChunker, pack_blocks
from chunkcore.document import Document, Span
from chunkcore.tokens import TokenizedText


@strategies.register("html")
@dataclass(frozen=True, kw_only=True)
class Html(HeadingChunker):
    """As many whole blocks of HTML in a chunk as `size` allows; each section begins a chunk.

    Structure-based (the chunking survey). justhtml parses the page as browsers do. A heading (h1 to h6) begins a chunk
    and stays with what follows if a piece of that fits. An element over `size` is cut into its inner elements: lists
    between items, tables between rows, rows between cells, text at br, then between sentences. Tables, rows, `pre`,
    scripts and styles stay whole up to `maximum`. A chunk that begins inside a table has its header rows as an extra
    span if they fit. Only the last resort, cuts at lines, words or graphemes, can cut a tag.

    The minimum is soft, as in `Markdown`. Metadata: ``headings``, the titles above all of the chunk, outermost first.
    Linear time and memory. Needs the extra ``structure``.

    Attributes:
        content: "source": chunks are of the page with its markup; "text": of what a reader sees, a span for each piece
            between tags, joined by spaces. Markup, comments, scripts, styles and templates are then in no chunk and in
            no size. Entities are as in the source.

    >>> page = "<h1>Tea</h1><p>Two kinds.</p><h2>Green</h2><p>Steam <b>it</b>.</p>"
    >>> for chunk in Html(size=20, content="text").chunk(Document("tea.html", page)):
    ...     print(chunk.metadata["headings"], chunk.text)
    ['Tea'] Tea Two kinds.
    ['Tea', 'Green'] Green Steam it .
    """

    separator: ClassVar[str] = " "

    content: Literal["source", "text"] = "source"

    def draft(self, source: TokenizedText, document: Document | None) -> list[Draft]:
        blocks, seen = html_blocks(source.text, only_text=self.content == "text")
        if seen is None:
            packed = pack_blocks(source, blocks, self, opening=self.heading_level)
            return [Draft(chunk.spans, {"headings": list(chunk.path)}) for chunk in packed]
        drafts = []
        for chunk in pack_blocks(self.token_counter.tokenize(seen.text), blocks, self, opening=self.heading_level):
            ranges = [pair for span in chunk.spans for pair in seen.spans(span.start, span.end)]
            drafts.append(Draft(tuple([Span(*pair) for pair in ranges]), {"headings": list(chunk.path)}))
        return drafts
