"""What every strategy promises of the chunks of any text (docs/concepts.md), in one function: `check_promises`."""

from __future__ import annotations

from chunkcore.chunkers import Chunker
from chunkcore.reading.visible import is_html
from chunkcore.text import Chunk, Document, text_of_spans

__all__ = ["check_promises", "check_spans", "chunks_of", "lost"]


def check_promises(chunker: Chunker, text: str, name: str = "d") -> list[Chunk]:
    """Hold a strategy to its promises for a document; the chunks."""
    chunks = chunks_of(chunker, text, name)
    check_spans(chunker, text, chunks, name)
    if not is_html(Document(name, text)):  # of which markup is in no chunk
        # "drop" loses what it drops, on purpose; the tests only drop white space.
        assert lost(text, chunks) == ""
    if chunker.hard_maximum is not None:
        over = [chunk for chunk in chunks if chunk.token_count > chunker.hard_maximum]
        assert all(sum(map(len, chunk.spans)) == 1 for chunk in over)
        assert over == [chunk for chunk in chunks if "over_maximum" in chunk.metadata]
    return chunks


def chunks_of(chunker: Chunker, text: str, name: str = "d") -> list[Chunk]:
    return chunker.chunk(Document(name, text))


def check_spans(chunker: Chunker, text: str, chunks: list[Chunk], name: str = "d") -> None:
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    for chunk in chunks:
        assert all(0 <= span.start < span.end <= len(text) for span in chunk.spans)
        if not chunk.derived:
            assert chunk.text == text_of_spans(text, chunk.spans)
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
