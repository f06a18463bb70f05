"""`auto`: short documents whole, others by their format."""

from __future__ import annotations

from dataclasses import dataclass

from chunkcore.boundaries.blocks import table_blocks
from chunkcore.boundaries.formats import format_of
from chunkcore.boundaries.html import html_blocks
from chunkcore.boundaries.markdown import markdown_blocks
from chunkcore.chunkers.base import Draft, strategies
from chunkcore.chunkers.blocks import BlockChunker, pack_blocks
from chunkcore.chunkers.code import draft_code
from chunkcore.chunkers.sentence import Sentence
from chunkcore.document import Document, Span
from chunkcore.packing import trim
from chunkcore.tokens import TokenizedText


@strategies.register("auto")
@dataclass(frozen=True, kw_only=True)
class Auto(BlockChunker):
    r"""Picks a chunker for each document by its length and its format.

    A document of at most `size` is one chunk. Others are cut as by `Markdown`, `Html`, `Code` or, prose, `Sentence`;
    CSV and TSV files by rows, each chunk with the header (the chunking survey: match the structure).
    The format comes from the metadata, the file name, or the first 20,000 code points: see
    `chunkcore.boundaries.formats.format_of`. HTML and code need the extra ``structure``.

    Metadata: ``strategy`` ("whole", "markdown", "html", "code", "table" or "sentence"), and that chunker's own.

    >>> chunker = Auto(size=3, counter="words")
    >>> [(chunk.text, chunk.metadata) for chunk in chunker.chunk(Document("tea.md", "# Tea\n\nGreen.\n\n# Coffee\n"))]
    [('# Tea\n\nGreen.', {'strategy': 'markdown', 'headings': ['Tea']}),
     ('# Coffee', {'strategy': 'markdown', 'headings': ['Coffee']})]
    >>> chunker.chunk(Document("note", "Two words."))[0].metadata
    {'strategy': 'whole'}
    """

    def draft(self, source: TokenizedText, document: Document | None) -> list[Draft]:
        text = source.text
        start, end = trim(text, 0, len(text))
        if start == end:
            return []
        if source.count(start, end) <= self.size:
            return [Draft((Span(start, end),), {"strategy": "whole"})]
        kind, language = format_of(text, document)
        if kind == "prose":
            sizes = {"size": self.size, "minimum": self.minimum, "maximum": self.maximum}
            sentence = Sentence(**sizes, splitter=self.splitter, counter=self.counter)  # type: ignore[arg-type]
            return [Draft(spans, {"strategy": "sentence"}) for spans in sentence.split(source)]
        if kind == "code":
            return draft_code(source, language, self, strategy="code")
        if kind == "table":
            return [Draft(row.spans, {"strategy": kind}) for row in pack_blocks(source, table_blocks(text), self)]
        blocks = markdown_blocks(text) if kind == "markdown" else html_blocks(text)[0]
        packed = pack_blocks(source, blocks, self, opening=6)
        return [Draft(chunk.spans, {"strategy": kind, "headings": list(chunk.path)}) for chunk in packed]
