"""What a model must be able to do, as protocols: whoever has these methods is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

__all__ = ["Embedder", "TextTokens", "TokenCountingEmbedder", "TokenEmbedder", "Vectors", "is_symmetric"]

Vectors = NDArray[np.float32]


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors.

    Attributes:
        name: what it was built from, so that a configuration can name it.
        fingerprint: changes when the vectors could change; caches are keyed by it.
        max_tokens: how many of its own tokens it reads of a text, the rest being cut off; None for no limit.

    An embedder may also have an attribute `symmetric` (see `is_symmetric`) and a method `count_tokens`
    (see `TokenCountingEmbedder`).
    """

    # Properties, so that an attribute and a property are both welcome.
    @property
    def name(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def max_tokens(self) -> int | None: ...

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One row a text: float32, shape (len(texts), dimensions)."""
        ...

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """One row a query: float32, shape (len(texts), dimensions)."""
        ...


@runtime_checkable
class TokenCountingEmbedder(Embedder, Protocol):
    """An embedder that can say how long a text is to it, and so what it would cut off."""

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Tokens of each document before truncation, with those that the model puts around a text: int64."""
        ...


class TextTokens(NamedTuple):
    """A whole document as a model reads it, however long it is.

    Attributes:
        ids: the model's tokens, those included that it puts around a document: int64, shape (n,).
        starts: the code point of the document at which each begins: int64, shape (n,), ascending.
        ends: the code point after its last. What stands around the document is empty: at 0, or at its end.
        before: how many tokens stand before the document's own.
        after: how many stand after them.
    """

    ids: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    before: int
    after: int


@runtime_checkable
class TokenEmbedder(Embedder, Protocol):
    """An embedder whose vectors are means of token vectors, and which gives those: what late chunking needs."""

    def tokenize(self, text: str) -> TextTokens:
        """The document's tokens, none cut off."""
        ...

    def embed_tokens(self, windows: Sequence[NDArray[np.int64]]) -> Sequence[Vectors]:
        """For each sequence of token ids, of at most `max_tokens`, a row a token: float32, (tokens, dimensions)."""
        ...


def is_symmetric(embedder: Embedder) -> bool:
    """Whether a text has the same vector as a document and as a query, by the embedder's own `symmetric`.

    One that does not say is taken to tell them apart.
    """
    return bool(getattr(embedder, "symmetric", False))
