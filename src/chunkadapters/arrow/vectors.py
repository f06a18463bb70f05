"""The vectors of a document's chunks, and whether the model read all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from chunkcore.document import Chunk
from chunkcore.errors import ModelError
from chunkcore.models import embed
from chunkcore.models.base import Embedder, TokenCountingEmbedder, Vectors

__all__ = ["Embedding", "Vectorizer"]


@dataclass(frozen=True)
class Embedding:
    """A row a chunk: vectors, float32, and whether each is of the chunk's beginning alone; None where nobody knows."""

    vectors: Vectors
    truncated: list[bool | None]


@dataclass(frozen=True)
class Vectorizer:
    """An embedder with the dimensions that its vectors are to have.

    Attributes:
        embedder: the model.
        stated: the dimensions; None: as the embedder says, or as one vector has that it is asked for.
    """

    embedder: Embedder
    stated: int | None = None

    @cached_property
    def dimensions(self) -> int:
        """Of every vector.

        Raises:
            ModelError: the embedder does not say, and does not answer.
        """
        if self.stated is not None:
            return self.stated
        own = getattr(self.embedder, "dimensions", None)
        return own if type(own) is int else embed(self.embedder, ["a"]).shape[1]

    def __call__(self, chunks: list[Chunk]) -> Embedding:
        """A document's chunks, which go to the model together and no other's with them.

        What is padded with what changes the last bits of vectors: they must not depend on what else is in a batch.

        Raises:
            ModelError: the model failed, or answered with something that is no answer, twice.
        """
        texts = [chunk.embedded_text for chunk in chunks]
        vectors = embed(self.embedder, texts)
        if vectors.shape[1] != self.dimensions:
            raise ModelError(
                f"the model {self.embedder.name!r} answered with {vectors.shape[1]} dimensions: expected "
                f"{self.dimensions}"
            )
        return Embedding(vectors, self._truncated(texts))

    def _truncated(self, texts: list[str]) -> list[bool | None]:
        most = self.embedder.max_tokens
        if most is None:
            return [False] * len(texts)
        if not isinstance(self.embedder, TokenCountingEmbedder):
            return [None] * len(texts)
        return [bool(count > most) for count in self.embedder.count_tokens(texts)]
