"""What a model must be able to do, as protocols: whoever has these methods is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

__all__ = ["Embedder", "Vectors"]

Vectors = NDArray[np.float32]


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors.

    Attributes:
        name: what it was built from, so that a configuration can name it.
        fingerprint: changes when the vectors could change; caches are keyed by it.
        max_tokens: how many of its own tokens it reads of a text, the rest being cut off; None for no limit.
    """

    name: str
    fingerprint: str
    max_tokens: int | None

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One row a text: float32, shape (len(texts), dimensions)."""
        ...

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """One row a query: float32, shape (len(texts), dimensions)."""
        ...
