"""What every strategy promises of the chunks of any text (docs/design.md), in one function: `check_promises`."""

from __future__ import annotations

from chunkcore.chunkers import Chunker
from chunkcore.document import Chunk, Document
from chunkcore.errors import SizeError

__all__ = ["check_promises", "check_spans", "chunks_of", "lost"]


def check_promises(chunker: Chunker, text: str, name: str = "d") -> list[Chunk] | None:
    """Hold a strategy to its promises for a document; the chunks, or None where one grapheme is over the maximum."""
    chunks = chunks_of(chunker, text, name)
    if chunks is None:
        return None
    check_spans(chunker, text, chunks, name)
    if not _drops_markup(chunker):
        # "drop" loses what it drops, on purpose; the tests only drop white space.
        assert lost(text, chunks) == ""
    if chunker.hard_maximum is not None:
        assert all(chunk.token_count <= chunker.hard_maximum for chunk in chunks)
    return chunks


def chunks_of(chunker: Chunker, text: str, name: str = "d") -> list[Chunk] | None:
    """The chunks; None where one grapheme is over a maximum that is promised."""
    try:
        return chunker.chunk(Document(name, text))
    except SizeError:
        if chunker.hard_maximum is None and getattr(chunker, "max_segment", None) is None:
            raise
        return None


def check_spans(chunker: Chunker, text: str, chunks: list[Chunk], name: str = "d") -> None:
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    for chunk in chunks:
        assert all(0 <= span.start < span.end <= len(text) for span in chunk.spans)
        if not chunk.derived:
            assert chunk.text == chunker.separator.join(text[span.start : span.end] for span in chunk.spans)
        assert chunk.token_count == chunker.token_counter.count(chunk.text)
        assert chunk.document_id == name
    starts = [chunk.start for chunk in chunks]
    assert starts == sorted(starts)
    mirrors_overlap = getattr(chunker, "overlap", 0) and chunker.name == "recursive" and chunker.hard_maximum is None
    if not mirrors_overlap:  # LangChain's chunks can repeat, once their white space is stripped
        assert len({chunk.id for chunk in chunks}) == len(chunks)


def lost(text: str, chunks: list[Chunk]) -> str:
    """What is in no chunk, white space aside."""
    covered = bytearray(len(text))
    for chunk in chunks:
        for span in chunk.spans:
            covered[span.start : span.end] = b"\x01" * len(span)
    return "".join(c for c, inside in zip(text, covered, strict=True) if not inside and not c.isspace())


def _drops_markup(chunker: Chunker) -> bool:
    return getattr(chunker, "content", "source") == "text"
