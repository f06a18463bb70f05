"""Late chunking as a Haystack component."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from haystack import Document, component

from chunkadapters._haystack import Serialized, check_documents, hit_of
from chunkadapters.hits import late_vectors
from chunkcore.models import DEFAULT_MODEL, Embedder, LateEmbedder, get_embedder


@component
class ChunkcoreLateEmbedder(Serialized):
    """Embeds chunks in the context of their whole documents (late chunking; see `LateEmbedder`).

    Embed questions by `ChunkcoreTextEmbedder` with the same model. Metadata are not embedded.

    Args:
        model: a model with token vectors, or its name; YAML holds the name.

    Raises:
        OptionError: a `ValueError`: unknown model, or one without token vectors.
    """

    def __init__(self, model: Embedder | str = DEFAULT_MODEL) -> None:
        self.model = get_embedder(model).name
        self._late = LateEmbedder(model)

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document], sources: list[Document]) -> dict[str, list[Document]]:
        """Embed chunks. Returns ``{"documents": copies with embeddings}``.

        Args:
            documents: chunks from `ChunkcoreDocumentSplitter`.
            sources: the chunks' documents.

        Raises:
            TypeError: not lists of `Document`.
            DataError: a `ValueError`: a chunk is not at its stated place in one of the sources.
            ModelError: the model failed, or gave a wrong answer, twice.
        """
        check_documents(self, documents, "documents")
        check_documents(self, sources, "sources")
        texts = {source.id: source.content or "" for source in sources}
        vectors = late_vectors(list(map(hit_of, documents)), texts, self._late)
        return {
            "documents": [replace(document, embedding=row) for document, row in zip(documents, vectors, strict=True)]
        }

    @component.output_types(documents=list[Document])
    async def run_async(self, documents: list[Document], sources: list[Document]) -> dict[str, list[Document]]:
        return await asyncio.to_thread(self.run, documents, sources)
