"""Late chunking as a Haystack component."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict

from chunkadapters._haystack.retrieval import hit_of
from chunkadapters.places import late_vectors
from chunkcore.models import DEFAULT_MODEL, Embedder, LateEmbedder, get_embedder

__all__ = ["ChunkcoreLateEmbedder"]


@component
class ChunkcoreLateEmbedder:
    """Embeds chunks in the context of their whole documents (late chunking; see `LateEmbedder`).

    Questions are embedded as ever, by `ChunkcoreTextEmbedder` with the same model. Metadata are not read.

    Args:
        model: the name of a model with token vectors, or an embedder that has them; YAML holds its name.

    Raises:
        OptionError: a `ValueError`: no such model, or it gives no token vectors.
    """

    def __init__(self, model: Embedder | str = DEFAULT_MODEL) -> None:
        self._name = get_embedder(model).name
        self._late = LateEmbedder(model)

    def to_dict(self) -> dict[str, Any]:
        """The component as plain values."""
        return default_to_dict(self, model=self._name)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ChunkcoreLateEmbedder:
        """The component that `to_dict` described."""
        return default_from_dict(cls, data)

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document], sources: list[Document]) -> dict[str, list[Document]]:
        """Embed chunks.

        Args:
            documents: chunks, as `ChunkcoreDocumentSplitter` makes them.
            sources: the documents that they were cut from.

        Returns:
            ``{"documents": copies with embeddings}``.

        Raises:
            TypeError: not lists of `Document`.
            DataError: a `ValueError`: a chunk does not stand where it says in one of the sources.
            ModelError: the model failed, or answered with something that is no answer, twice.
        """
        for name, given in (("documents", documents), ("sources", sources)):
            if not isinstance(given, list) or not all(isinstance(each, Document) for each in given):
                raise TypeError(f"ChunkcoreLateEmbedder expects a list of Documents as {name}")
        texts = {each.id: each.content or "" for each in sources}
        vectors = late_vectors([hit_of(each) for each in documents], texts, self._late)
        return {"documents": [replace(each, embedding=row) for each, row in zip(documents, vectors, strict=True)]}

    @component.output_types(documents=list[Document])
    async def run_async(self, documents: list[Document], sources: list[Document]) -> dict[str, list[Document]]:
        """`run` in a thread: the event loop goes on meanwhile."""
        return await asyncio.to_thread(self.run, documents, sources)
