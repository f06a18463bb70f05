"""chunkcore's embedders as Haystack's document and text embedders; late chunking."""

from __future__ import annotations

from dataclasses import replace

from haystack import Document, component

from chunkadapters.haystack.documents import DocumentLists, Serialized, check_documents
from chunkadapters.models import embedded
from chunkcore.models import DEFAULT_MODEL, Embedder, get_embedder


@component
class ChunkcoreDocumentEmbedder(Serialized):
    """Embeds documents by a chunkcore embedder.

    Args:
        model: an embedder, or its name; YAML holds the name.
        meta_fields_to_embed: metadata to embed before the text, one per line: ``["context"]`` for text that a chunker
            wrote about a chunk.

    Raises `OptionError` (a `ValueError`): unknown model.
    """

    def __init__(
        self, model: Embedder | str = DEFAULT_MODEL, meta_fields_to_embed: list[str] | None = None
    ) -> None:
        self._embedder = get_embedder(model)
        self.model = self._embedder.name
        self.meta_fields_to_embed = meta_fields_to_embed or []

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> DocumentLists:
        """Embed documents. Returns ``{"documents": copies with embeddings}``. Raises `TypeError` or `ModelError`."""
        check_documents(self, documents)
        rows = embedded(self._embedder, list(map(self._text, documents)))
        pairs = zip(documents, rows, strict=True)
        return {"documents": [replace(document, embedding=row) for document, row in pairs]}

    def _text(self, document: Document) -> str:
        values = [*map(document.meta.get, self.meta_fields_to_embed), document.content or ""]
        return "\n".join([str(value) for value in values if value is not None])


@component
class ChunkcoreTextEmbedder(Serialized):
    """Embeds a question by a chunkcore embedder; `model` as in `ChunkcoreDocumentEmbedder`."""

    def __init__(self, model: Embedder | str = DEFAULT_MODEL) -> None:
        self._embedder = get_embedder(model)
        self.model = self._embedder.name

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, list[float]]:
        """Embed a question. Raises `TypeError` or `ModelError`."""
        if not isinstance(text, str):
            raise TypeError(
                f"ChunkcoreTextEmbedder expects a string as input, got {type(text).__name__}"
            )
        (row,) = embedded(self._embedder, [text], queries=True)
        return {"embedding": row}
