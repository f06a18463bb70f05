"""Late vectors and segments of chunks that a framework holds, from the places that they state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chunkadapters._merging import Hit
from chunkcore.document import Span
from chunkcore.errors import DataError
from chunkcore.models import LateEmbedder
from chunkcore.models.base import Embedder

__all__ = ["late_vectors", "segment_texts"]


def late_vectors(
    chunks: Sequence[Hit], texts: Mapping[str, str], model: LateEmbedder | Embedder | str
) -> list[list[float]]:
    """A vector a chunk, in the context of its whole document.

    Args:
        chunks: with the document that each is of, and its spans there.
        texts: of the documents.
        model: with token vectors; see `LateEmbedder`.

    Raises:
        DataError: a chunk says no place, or one in a document that is not given or has another text there.
        OptionError: the model gives no token vectors.
        ModelError: the model failed, or answered with something that is no answer, twice.
    """
    late = model if isinstance(model, LateEmbedder) else LateEmbedder(model)
    rows: dict[str, list[int]] = {}
    for row, chunk in enumerate(chunks):
        _check(chunk, texts)
        rows.setdefault(chunk.document, []).append(row)
    found: list[list[float]] = [[] for _ in chunks]
    for document, own in rows.items():
        vectors = late.embed_spans(texts[document], [chunks[row].spans for row in own])
        for row, vector in zip(own, vectors.tolist(), strict=True):
            found[row] = vector
    return found


def _check(chunk: Hit, texts: Mapping[str, str]) -> None:
    shown = f"the chunk that begins with {chunk.text[:40]!r}"
    if not chunk.document or not chunk.spans:
        raise DataError(f"{shown} does not say where in its document it stands: cut it with chunkadapters' splitter")
    if chunk.document not in texts:
        raise DataError(
            f"{shown} is of {chunk.document!r}, which is not among the documents: give those it was cut from"
        )
    text = texts[chunk.document]
    if any(span.slice(text) != part for span, part in chunk.parts()):
        raise DataError(f"{shown} does not stand where it says in {chunk.document!r}: give the text it was cut from")


def segment_texts(
    chunk: Hit, segments: Sequence[tuple[Span, ...]], separator: str = "\n"
) -> list[tuple[tuple[Span, ...], str]]:
    """The places and texts of a chunk's segments; the chunk's own where it has none.

    >>> chunk = Hit("d", (Span(10, 30),), "Tea is hot. It boils")
    >>> segment_texts(chunk, [(Span(10, 21),), (Span(22, 30),)])[1]
    ((Span(start=22, end=30),), 'It boils')
    """
    parts = chunk.parts()
    found = []
    for segment in segments if parts else ():
        slices = [
            text[max(span.start, own.start) - own.start : min(span.end, own.end) - own.start]
            for span in segment
            for own, text in parts
            if max(span.start, own.start) < min(span.end, own.end)
        ]
        if slices:
            found.append((segment, separator.join(slices)))
    return found or [(chunk.spans, chunk.text)]
