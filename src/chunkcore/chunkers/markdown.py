"""`markdown`: whole blocks under their headings, packed to a target size."""

from __future__ import annotations

from dataclasses import dataclass

from chunkcore.boundaries.markdown import markdown_blocks
from chunkcore.chunkers.base import Draft, strategies
from chunkcore.chunkers.blocks import BlockChunker, pack_blocks
from chunkcore.document import Document
from chunkcore.errors import OptionError
from chunkcore.tokens import TokenizedText

__all__ = ["Markdown"]


@strategies.register("markdown")
@dataclass(frozen=True, kw_only=True)
class Markdown(BlockChunker):
    r"""As many whole blocks of Markdown a chunk as `size` allows, each section beginning a chunk of its own.

    Structure-based (the chunking survey). A CommonMark parser, with GitHub's tables and front matter, tells the
    blocks; spans are of the source, markup included. A heading begins a chunk, alone only where nothing of what
    follows it fits beside it; headings that follow each other stay together. A block over `size` is cut: a list
    between its items, an item or a quote between its blocks, a paragraph between sentences. Fenced and indented
    code, HTML and tables stay whole up to `maximum`, then are cut between lines and rows. A chunk that begins
    inside a table has two spans: the table's header, and its own; from a row on that does not fit beside the
    header, chunks go without (they would be out of order). What is still over the maximum is cut at words, else at
    graphemes.

    The minimum is soft: a chunk under it takes parts of the block that follows it, or joins the neighbour across
    the weaker cut (a section's is the strongest, the higher its heading the more so; of two alike the one
    before), so that a heading can stand inside a chunk; it is never dropped. What does not fit `maximum` stays.

    Metadata: ``headings``, the titles of the headings that all of the chunk stands under, outermost first, as
    the source has them, without the marks of a heading.

    One pass of the parser and one of the tokenizer; time and memory grow linearly with the text.

    Attributes:
        size: the target, in the counter's unit; at least 1.
        minimum: what a chunk should not be under; ``0 <= minimum <= size``.
        maximum: what no chunk's own text is over; at least `size`. None: `size`.
        splitter: what cuts paragraphs: "default", "spacy", "spacy:<pipeline>", "regex:<pattern>", or a callable with a
            `name`: see `sentence_ranges`.
        heading_level: headings of level 1 to this begin a chunk, 0 to 6. With 0, none does.

    Raises:
        OptionError: an option is out of range.
        SizeError: one grapheme is over the maximum.

    >>> chunker = Markdown(size=12, counter="words")
    >>> for chunk in chunker.chunk(Document("notes.md", "# Tea\n\nTwo kinds.\n\n## Green\n\nSteam it.\n\n- Sencha\n")):
    ...     print(chunk.metadata["headings"], repr(chunk.text))
    ['Tea'] '# Tea\n\nTwo kinds.'
    ['Tea', 'Green'] '## Green\n\nSteam it.\n\n- Sencha'
    """

    heading_level: int = 6

    def validate(self) -> None:
        super().validate()
        if not 0 <= self.heading_level <= 6:
            raise OptionError(f"heading_level is 0 to 6, got {self.heading_level}")

    def draft(self, source: TokenizedText, document: Document | None) -> list[Draft]:
        packed = pack_blocks(source, markdown_blocks(source.text), self, opening=self.heading_level)
        return [Draft(chunk.spans, {"headings": list(chunk.path)}) for chunk in packed]
