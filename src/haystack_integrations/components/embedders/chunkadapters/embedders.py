"""chunkcore's embedders where Haystack takes a document or a text embedder."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict

from chunkcore.models import DEFAULT_MODEL, Embedder, embed, get_embedder

__all__ = ["ChunkcoreDocumentEmbedder", "ChunkcoreTextEmbedder"]


@component
class ChunkcoreDocumentEmbedder:
    """Embeds documents by a chunkcore embedder.

    Args:
        model: its name, or an embedder; YAML holds its name.
        meta_fields_to_embed: metadata that are embedded before the text, a line each: ``["context"]`` for what a
            strategy wrote about a chunk.

    Raises:
        OptionError: a `ValueError`: no such model.
    """

    def __init__(self, model: Embedder | str = DEFAULT_MODEL, meta_fields_to_embed: list[str] | None = None) -> None:
        self._embedder = get_embedder(model)
        self.meta_fields_to_embed = meta_fields_to_embed or []

    def to_dict(self) -> dict[str, Any]:
        """The component as plain values."""
        return default_to_dict(self, model=self._embedder.name, meta_fields_to_embed=self.meta_fields_to_embed)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ChunkcoreDocumentEmbedder:
        """The component that `to_dict` described."""
        return default_from_dict(cls, data)

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """Embed documents.

        Returns:
            ``{"documents": copies with embeddings}``.

        Raises:
            TypeError: not a list of `Document`.
            ModelError: the model failed, or answered with something that is no answer, twice.
        """
        if not isinstance(documents, list) or not all(isinstance(each, Document) for each in documents):
            raise TypeError("ChunkcoreDocumentEmbedder expects a list of Documents as input")
        rows = embed(self._embedder, [self._text(each) for each in documents]).tolist()
        return {"documents": [replace(each, embedding=row) for each, row in zip(documents, rows, strict=True)]}

    @component.output_types(documents=list[Document])
    async def run_async(self, documents: list[Document]) -> dict[str, list[Document]]:
        """`run` in a thread: the event loop goes on meanwhile."""
        return await asyncio.to_thread(self.run, documents)

    def _text(self, document: Document) -> str:
        told = [str(document.meta[key]) for key in self.meta_fields_to_embed if document.meta.get(key) is not None]
        return "\n".join([*told, document.content or ""])


@component
class ChunkcoreTextEmbedder:
    """Embeds a question by a chunkcore embedder.

    Args:
        model: its name, or an embedder; YAML holds its name.

    Raises:
        OptionError: a `ValueError`: no such model.
    """

    def __init__(self, model: Embedder | str = DEFAULT_MODEL) -> None:
        self._embedder = get_embedder(model)

    def to_dict(self) -> dict[str, Any]:
        """The component as plain values."""
        return default_to_dict(self, model=self._embedder.name)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ChunkcoreTextEmbedder:
        """The component that `to_dict` described."""
        return default_from_dict(cls, data)

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, list[float]]:
        """Embed a question.

        Raises:
            TypeError: not a text.
            ModelError: the model failed, or answered with something that is no answer, twice.
        """
        if not isinstance(text, str):
            raise TypeError(f"ChunkcoreTextEmbedder expects a string as input, got {type(text).__name__}")
        return {"embedding": embed(self._embedder, [text], queries=True)[0].tolist()}

    @component.output_types(embedding=list[float])
    async def run_async(self, text: str) -> dict[str, list[float]]:
        """`run` in a thread: the event loop goes on meanwhile."""
        return await asyncio.to_thread(self.run, text)
