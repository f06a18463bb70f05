"""Haystack's embedders and chat generators where chunkcore takes an `Embedder` or an `LLM`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from haystack import Document
from haystack.core.serialization import component_from_dict, component_to_dict, import_class_by_name
from haystack.dataclasses import ChatMessage

from chunkadapters._haystack.retrieval import Sockets, component_sockets, is_component, run_async, warm_up
from chunkadapters.models import BridgedEmbedder, BridgedLLM, identify, reply_of, titled
from chunkcore.errors import ModelError, OptionError
from chunkcore.models.llm.base import Message, Reply

__all__ = ["as_embedder", "as_llm", "as_model", "restored", "written"]

_FRAMEWORK = "haystack"
_FROM = {"system": ChatMessage.from_system, "user": ChatMessage.from_user, "assistant": ChatMessage.from_assistant}


def as_embedder(
    component: Any,
    text_embedder: Any = None,
    *,
    name: str | None = None,
    fingerprint: str | None = None,
    max_tokens: int | None = None,
) -> BridgedEmbedder:
    """Any Haystack document or text embedder as an `Embedder`, for strategies, indexes, caches and comparisons.

    The options of `ChunkcoreDocumentSplitter` take such a component as it is; this is for saying more about it, and
    for everywhere else: ``CachedEmbedder(as_embedder(OpenAIDocumentEmbedder(), OpenAITextEmbedder()))``.

    Args:
        component: a document embedder, which is given all texts at once and batches them itself; or a text embedder,
            which is given one at a time.
        text_embedder: what embeds questions; without it, they are embedded as documents are.
        name: what configurations and tables call it; by default the class and the model.
        fingerprint: what its vectors depend on; by default its class and settings, without keys. To be given where
            these do not tell which model it is.
        max_tokens: how many of its tokens it reads of a text; None where it has no limit, or it is not known.

    Raises:
        OptionError: no such component, or it does not tell what it depends on.

    >>> from haystack.components.embedders import MockDocumentEmbedder
    >>> embedder = as_embedder(MockDocumentEmbedder(dimension=8))
    >>> embedder.name, embedder.embed_documents(["tea", "coffee"]).shape
    ('haystack:MockDocumentEmbedder:mock-model', (2, 8))
    """
    sockets = _sockets(component)
    if sockets is None or not (_embeds_documents(sockets) or _embeds_text(sockets)):
        raise OptionError(f"expected a Haystack document or text embedder, got {type(component).__name__}")
    if text_embedder is not None and not _embeds_text(_sockets(text_embedder)):
        raise OptionError(f"text_embedder: expected a Haystack text embedder, got {type(text_embedder).__name__}")
    identity = identify(_FRAMEWORK, component, (), name, fingerprint)
    return _Embedder(component, text_embedder, identity, max_tokens)


def as_llm(
    generator: Any,
    *,
    name: str | None = None,
    fingerprint: str | None = None,
    concurrency: int = 1,
) -> BridgedLLM:
    """Any Haystack chat generator as an `LLM`.

    A JSON schema is passed as ``response_format`` to `OpenAIChatGenerator` and what derives from it, which most
    services' generators do; another generator is asked in words. Tokens are those of the reply's ``usage``.

    Args:
        generator: a component from ``messages`` to ``replies``.
        name: what configurations and tables call it; by default the class and the model.
        fingerprint: what its answers depend on; by default its class and settings, without keys. To be given where
            these do not tell which model it is.
        concurrency: questions at the same time, of all threads: more than 1 for a service, not for a local model.

    Raises:
        OptionError: no chat generator, it does not tell what its answers depend on, or concurrency is under 1.

    >>> from haystack.components.generators.chat import MockChatGenerator
    >>> as_llm(MockChatGenerator("Yes.")).complete([{"role": "user", "content": "Tea?"}]).text
    'Yes.'
    """
    if not _generates(_sockets(generator)):
        raise OptionError(f"expected a Haystack chat generator, got {type(generator).__name__}")
    return _LLM(generator, identify(_FRAMEWORK, generator, (), name, fingerprint), concurrency)


def as_model(value: Any) -> Any:
    """A value of an option: Haystack's models as chunkcore's, anything else as it is."""
    sockets = _sockets(value)
    if sockets is None:
        return value
    return as_llm(value) if _generates(sockets) else as_embedder(value)


def written(value: Any, plain: Any) -> Any:
    """A model as a configuration has it: a bridged component as it describes itself, anything else as its name."""
    if not isinstance(value, _Embedder | _LLM):
        return plain
    if isinstance(value, _Embedder) and value.text_embedder is not None:
        raise OptionError(f"{value.name!r} is of two components, which a configuration cannot hold: pass one of them")
    return component_to_dict(value.model, value.name)


def restored(value: Any) -> Any:
    """What `written` described, built again; anything else as it is.

    Raises:
        DeserializationError: the component's module is none that Haystack was told to trust.
    """
    if not (isinstance(value, dict) and isinstance(value.get("type"), str) and "init_parameters" in value):
        return value
    return component_from_dict(import_class_by_name(value["type"]), value, "model")


def _sockets(component: Any) -> Sockets | None:
    return component_sockets(component) if is_component(component) else None


def _embeds_documents(sockets: Sockets) -> bool:
    given = [socket.name for socket in sockets.inputs if socket.mandatory]
    return given == ["documents"] and any(socket.name == "documents" for socket in sockets.outputs)


def _embeds_text(sockets: Sockets | None) -> bool:
    return sockets is not None and any(
        socket.name == "embedding" and socket.holds(list[float]) for socket in sockets.outputs
    )


def _generates(sockets: Sockets | None) -> bool:
    return (
        sockets is not None
        and any(socket.name == "messages" for socket in sockets.inputs)
        and any(socket.name == "replies" for socket in sockets.outputs)
    )


class _Embedder(BridgedEmbedder):
    def __init__(self, component: Any, text_embedder: Any, identity: Any, max_tokens: int | None) -> None:
        super().__init__(component, identity, max_tokens)
        self._whole_batches = _embeds_documents(component_sockets(component))
        self.text_embedder = text_embedder
        self.symmetric = text_embedder is None

    def warm_up(self) -> None:
        """Load what the components load."""
        for each in (self.model, self.text_embedder):
            warm_up(each)

    def _documents(self, texts: list[str]) -> Any:
        warm_up(self.model)
        if not self._whole_batches:
            return [self.model.run(text=text)["embedding"] for text in texts]
        return self._vectors(self.model.run(documents=_numbered(texts)), texts)

    def _queries(self, texts: list[str]) -> Any:
        if self.text_embedder is None:
            return self._documents(texts)
        warm_up(self.text_embedder)
        return [self.text_embedder.run(text=text)["embedding"] for text in texts]

    async def _adocuments(self, texts: list[str]) -> Any:
        await asyncio.to_thread(warm_up, self.model)
        if not self._whole_batches:
            return [(await run_async(self.model, {"text": text}))["embedding"] for text in texts]
        return self._vectors(await run_async(self.model, {"documents": _numbered(texts)}), texts)

    async def _aqueries(self, texts: list[str]) -> Any:
        if self.text_embedder is None:
            return await self._adocuments(texts)
        await asyncio.to_thread(warm_up, self.text_embedder)
        return [(await run_async(self.text_embedder, {"text": text}))["embedding"] for text in texts]

    def _vectors(self, answer: Mapping[str, Any], texts: list[str]) -> list[Any]:
        """A vector a text: embedders may hand documents back in another order."""
        found = {document.id: document.embedding for document in answer["documents"]}
        if len(found) != len(texts):
            raise ModelError(f"the model {self.name!r} was given {len(texts)} texts and answered with {len(found)}")
        return [found.get(str(place)) for place in range(len(texts))]


def _numbered(texts: list[str]) -> list[Document]:
    return [Document(id=str(place), content=text) for place, text in enumerate(texts)]


class _LLM(BridgedLLM):
    def warm_up(self) -> None:
        """Load what the component loads."""
        warm_up(self.model)

    def _ask(self, messages: Sequence[Message], schema: Mapping[str, Any] | None) -> Reply:
        warm_up(self.model)
        return _read(self.model.run(**self._values(messages, schema)))

    async def _aask(self, messages: Sequence[Message], schema: Mapping[str, Any] | None) -> Reply:
        await asyncio.to_thread(warm_up, self.model)
        return _read(await run_async(self.model, self._values(messages, schema)))

    def _values(self, messages: Sequence[Message], schema: Mapping[str, Any] | None) -> dict[str, Any]:
        values: dict[str, Any] = {"messages": [_FROM[each["role"]](each["content"]) for each in messages]}
        if schema is not None:
            # By name: the class itself takes a second to import.
            if not any(cls.__name__ == "OpenAIChatGenerator" for cls in type(self.model).__mro__):
                raise NotImplementedError
            held = {"name": "answer", "strict": True, "schema": titled(schema)}
            values["generation_kwargs"] = {"response_format": {"type": "json_schema", "json_schema": held}}
        return values


def _read(answer: Mapping[str, Any]) -> Reply:
    reply = answer["replies"][0]
    return reply_of(reply.text or "", reply.meta)
