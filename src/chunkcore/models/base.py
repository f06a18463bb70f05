"""What a model must be able to do, as protocols: whoever has these methods is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

__all__ = ["Embedder", "TokenCountingEmbedder", "Vectors", "is_symmetric"]

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


def is_symmetric(embedder: Embedder) -> bool:
    """Whether a text has the same vector as a document and as a query, by the embedder's own `symmetric`.

    One that does not say is taken to tell them apart.
    """
    return bool(getattr(embedder, "symmetric", False))
