"""The model that is to embed the chunks: sizes suit it, and what it would cut off is warned about."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator

from chunkcore.document import Chunk
from chunkcore.models.base import Embedder, TokenCountingEmbedder

__all__ = ["TruncationWarning", "watched"]


class TruncationWarning(UserWarning):
    """Chunks are longer than the model reads that is to embed them: it would cut their ends off."""


def watched(chunked: Iterable[list[Chunk]], embedder: Embedder | None) -> Iterator[list[Chunk]]:
    """The documents' chunks as they come; after the last, a warning if the embedder would cut any of them off.

    It tells the number of such chunks, and of the embedder's tokens that are lost. What a framework puts beside a
    chunk's text when it embeds it is not counted. An embedder without a limit, or one that does not count its tokens,
    is not warned about.
    """
    most = embedder.max_tokens if isinstance(embedder, TokenCountingEmbedder) else None
    if embedder is None or most is None:
        yield from chunked
        return
    total = cut = lost = 0
    for chunks in chunked:
        counts = embedder.count_tokens([chunk.text for chunk in chunks])  # type: ignore[attr-defined]
        over = counts[counts > most] - most
        total, cut, lost = total + len(chunks), cut + len(over), lost + int(over.sum())
        yield chunks
    if cut:
        warnings.warn(
            f"{cut:,} of {total:,} chunks are longer than the {most} tokens that {embedder.name} reads: {lost:,} of "
            "its tokens would be cut off and never be searched. Choose a smaller size, or leave size and counter out, "
            "so that fit_to chooses them",
            TruncationWarning,
            stacklevel=3,
        )
