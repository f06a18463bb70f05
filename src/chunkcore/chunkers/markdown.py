"""`markdown`: whole blocks under their headings, packed to a target size."""

from __future__ import annotations

from dataclasses import dataclass

from chunkcore.boundaries.markdown import markdown_blocks
from chunkcore.chunkers.base import Draft, strategies
from chunkcore.chunkers.blocks import HeadingChunker, pack_blocks
from chunkcore.document import Document
from chunkcore.tokens import TokenizedText


@strategies.register("markdown")
@dataclass(frozen=True, kw_only=True)
class Markdown(HeadingChunker):
    r"""As many whole blocks of Markdown in a chunk as `size` allows; each section begins a chunk.

    Structure-based (the chunking survey). A CommonMark parser, with GitHub's tables and front matter, finds the blocks.
    A heading begins a chunk and stays with what follows if a piece of that fits. A block over `size` is cut: a list
    between items, an item or a quote between its blocks, a paragraph between sentences. Code, HTML and tables stay
    whole up to `maximum`, then are cut between lines and rows. A chunk that begins inside a table repeats the table's
    header as an extra span if it fits. The last resort is cuts at words, then graphemes.

    The minimum is soft: a smaller chunk takes parts of the next block, or joins the neighbour across the weaker cut. A
    higher heading is a stronger cut. Metadata: ``headings``, the titles above all of the chunk, outermost first. Linear
    time and memory.

    >>> chunker = Markdown(size=12, counter="words")
    >>> for chunk in chunker.chunk(Document("notes.md", "# Tea\n\nTwo kinds.\n\n## Green\n\nSteam it.\n\n- Sencha\n")):
    ...     print(chunk.metadata["headings"], repr(chunk.text))
    ['Tea'] '# Tea\n\nTwo kinds.'
    ['Tea', 'Green'] '## Green\n\nSteam it.\n\n- Sencha'
    """

    def draft(self, source: TokenizedText, document: Document | None) -> list[Draft]:
        packed = pack_blocks(source, markdown_blocks(source.text), self, opening=self.heading_level)
        return [Draft(chunk.spans, {"headings": list(chunk.path)}) for chunk in packed]
