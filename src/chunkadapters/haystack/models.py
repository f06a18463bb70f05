"""Haystack's embedders and chat generators as chunkcore's models."""

from __future__ import annotations

from typing import Any

from haystack import Document
from haystack.core.component import Component
from haystack.core.serialization import component_from_dict, component_to_dict, import_class_by_name
from haystack.dataclasses import ChatMessage

from chunkadapters.haystack.documents import (
    embeds_documents,
    embeds_text,
    generates,
    is_component,
    warm_up,
)
from chunkadapters.models import BridgedEmbedder, BridgedLLM, titled
from chunkcore.errors import ModelError, OptionError
from chunkcore.models.endpoint import reply_of
from chunkcore.models.llm.base import Messages, Reply, Schema


def as_embedder(
    component: Component,
    text_embedder: Component | None = None,
    *,
    fingerprint: str | None = None,
    max_tokens: int | None = None,
) -> BridgedEmbedder:
    """Any Haystack document or text embedder as an `Embedder`, for chunkers, indexes, caches and comparisons.

    The options of `ChunkcoreDocumentSplitter` take such a component as it is; elsewhere, wrap it:
    ``CachedEmbedder(as_embedder(OpenAIDocumentEmbedder(), OpenAITextEmbedder()))``.

    Args:
        component: a document embedder, which gets all texts at once and batches them; or a text embedder, which gets
            one at a time.
        text_embedder: embeds questions; by default `component` does.
        fingerprint, max_tokens: see `BridgedEmbedder`.

    Raises `OptionError`: no such component, or a fingerprint is required, because its settings name no model.

    >>> from haystack.components.embedders import MockDocumentEmbedder
    >>> embedder = as_embedder(MockDocumentEmbedder(dimension=8))
    >>> embedder.name, embedder.embed_documents(["tea", "coffee"]).shape
    ('haystack:MockDocumentEmbedder:mock-model', (2, 8))
    """
    if not (embeds_documents(component) or embeds_text(component)):
        raise OptionError(
            f"expected a Haystack document or text embedder, got {type(component).__name__}"
        )
    if text_embedder is not None and not embeds_text(text_embedder):
        raise OptionError(
            f"text_embedder: expected a Haystack text embedder, got {type(text_embedder).__name__}"
        )
    embedder = _Embedder(component, fingerprint, max_tokens)
    embedder.text_embedder = text_embedder
    embedder.symmetric = text_embedder is None
    return embedder


def as_llm(
    generator: Component,
    *,
    fingerprint: str | None = None,
    concurrency: int = 1,
) -> BridgedLLM:
    """Any Haystack chat generator as an `LLM`.

    `OpenAIChatGenerator` and its subclasses, which most services' generators are, get a JSON schema as
    ``response_format``; another generator is asked in words. Token counts are the reply's ``usage``. Options: see
    `BridgedLLM`.

    Raises `OptionError`: no chat generator, a fingerprint is required, or concurrency is under 1.

    >>> from haystack.components.generators.chat import MockChatGenerator
    >>> as_llm(MockChatGenerator("Yes.")).complete([{"role": "user", "content": "Tea?"}]).text
    'Yes.'
    """
    if not generates(generator):
        raise OptionError(f"expected a Haystack chat generator, got {type(generator).__name__}")
    return _LLM(generator, fingerprint, concurrency)


def as_model(value: object) -> object:
    """An option's value: Haystack's models as chunkcore's, anything else as it is."""
    if not is_component(value):
        return value
    return as_llm(value) if generates(value) else as_embedder(value)


def written(value: object, plain: object) -> Any:
    """A model as YAML holds it: a bridged component as it describes itself, anything else as `plain`."""
    if not isinstance(value, _Embedder | _LLM):
        return plain
    if isinstance(value, _Embedder) and value.text_embedder is not None:
        raise OptionError(
            f"{value.name!r} is of two components, which a configuration cannot hold: pass one of them"
        )
    return component_to_dict(value.model, value.name)


def restored(value: object) -> object:
    """The component that `written` described; anything else as it is. Raises `DeserializationError`."""
    if not isinstance(value, dict) or not {"type", "init_parameters"} <= value.keys():
        return value
    return component_from_dict(import_class_by_name(value["type"]), value, "model")


class _Embedder(BridgedEmbedder):
    framework = "haystack"
    text_embedder: Component | None = None

    def warm_up(self) -> None:
        for component in (self.model, self.text_embedder):
            warm_up(component)

    def _documents(self, texts: list[str]) -> Any:
        if not embeds_documents(self.model):
            return _by_text(self.model, texts)
        warm_up(self.model)
        numbered = [Document(id=str(place), content=text) for place, text in enumerate(texts)]
        embedded = self.model.run(documents=numbered)["documents"]
        # Embedders may return documents in another order.
        vectors = {document.id: document.embedding for document in embedded}
        if len(vectors) != len(texts):
            raise ModelError(
                f"the model {self.name!r} was given {len(texts)} texts and answered with {len(vectors)}"
            )
        return [vectors.get(str(place)) for place in range(len(texts))]

    def _queries(self, texts: list[str]) -> Any:
        if self.text_embedder is None:
            return self._documents(texts)
        return _by_text(self.text_embedder, texts)


def _by_text(text_embedder: Component, texts: list[str]) -> Any:
    warm_up(text_embedder)
    return [text_embedder.run(text=text)["embedding"] for text in texts]


class _LLM(BridgedLLM):
    framework = "haystack"

    def warm_up(self) -> None:
        warm_up(self.model)

    def _ask(self, messages: Messages, schema: Schema | None) -> Reply:
        warm_up(self.model)
        options = {}
        if schema is not None:
            # By name: the class itself takes a second to import.
            if "OpenAIChatGenerator" not in [cls.__name__ for cls in type(self.model).__mro__]:
                raise NotImplementedError
            named = {"name": "answer", "strict": True, "schema": titled(schema)}
            response_format = {"type": "json_schema", "json_schema": named}
            options["generation_kwargs"] = {"response_format": response_format}
        turns = []
        for turn in messages:
            written_by = getattr(ChatMessage, f"from_{turn['role']}")
            turns.append(written_by(turn["content"]))
        reply = self.model.run(messages=turns, **options)["replies"][0]
        return reply_of(reply.text or "", reply.meta)
