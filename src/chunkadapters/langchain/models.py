"""LangChain's models as chunkcore's, and chunkcore's embedders as LangChain's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable

from chunkadapters.models import BridgedEmbedder, BridgedLLM, json_text, titled
from chunkcore.errors import OptionError
from chunkcore.models import DEFAULT_MODEL, Embedder, embed, get_embedder
from chunkcore.models.llm import Message, Reply
from chunkcore.models.llm.endpoint import reply_of


class ChunkcoreEmbeddings(Embeddings):
    """A chunkcore embedder as LangChain's embeddings.

    For chunkcore's own models, and for its cache before any other: ``ChunkcoreEmbeddings(CachedEmbedder(
    as_embedder(OpenAIEmbeddings()), EmbeddingCache("vectors.sqlite")))`` embeds each text once.

    Args:
        embedder: an embedder or its name. Raises `OptionError`: unknown model.

    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> len(ChunkcoreEmbeddings(as_embedder(DeterministicFakeEmbedding(size=8))).embed_query("tea"))
    8
    """

    def __init__(self, embedder: Embedder | str = DEFAULT_MODEL) -> None:
        self.embedder = get_embedder(embedder)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = embed(self.embedder, texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        vector: list[float] = embed(self.embedder, [text], queries=True)[0].tolist()
        return vector

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.embedder.name!r})"


def as_embedder(
    embeddings: Embeddings,
    *,
    name: str | None = None,
    fingerprint: str | None = None,
    max_tokens: int | None = None,
) -> BridgedEmbedder:
    """Any LangChain embeddings as an `Embedder`, for chunkers, indexes, caches and comparisons.

    `ChunkcoreTextSplitter` takes LangChain's embeddings as they are; wrap them elsewhere:
    ``CachedEmbedder(as_embedder(OpenAIEmbeddings()))``. Options: see `BridgedEmbedder`.

    Raises `OptionError`: no LangChain embeddings, or a fingerprint is required, because their settings name no model.

    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> embedder = as_embedder(DeterministicFakeEmbedding(size=8))
    >>> embedder.name, embedder.embed_documents(["tea", "coffee"]).shape
    ('langchain:DeterministicFakeEmbedding', (2, 8))
    """
    if not isinstance(embeddings, Embeddings):
        raise OptionError(f"expected LangChain embeddings, got {type(embeddings).__name__}")
    return _Embedder(embeddings, name, fingerprint, max_tokens)


def as_llm(
    model: Runnable[Any, Any],
    *,
    name: str | None = None,
    fingerprint: str | None = None,
    concurrency: int = 1,
) -> BridgedLLM:
    """Any LangChain chat model, or a runnable from messages to a message or a text, as an `LLM`.

    JSON schemas go through ``with_structured_output`` if the model has it; token counts are its ``usage_metadata``.
    Options: see `BridgedLLM`.

    Raises `OptionError`: no language model, a fingerprint is required, or concurrency is under 1.

    >>> from langchain_core.language_models import FakeListChatModel
    >>> as_llm(FakeListChatModel(responses=["Yes."])).complete([{"role": "user", "content": "Tea?"}]).text
    'Yes.'
    """
    if not isinstance(model, Runnable):
        raise OptionError(f"expected a LangChain chat model, got {type(model).__name__}")
    return _LLM(model, name, fingerprint, concurrency)


def as_model(value: object) -> Any:
    """An option's value: LangChain's models as chunkcore's, others unchanged."""
    if isinstance(value, Embeddings):
        return as_embedder(value)
    return as_llm(value) if isinstance(value, Runnable) else value


class _Embedder(BridgedEmbedder):
    framework, kinds = "langchain", (Embeddings,)
    methods = ("embed_documents", "embed_query")


class _LLM(BridgedLLM):
    framework, kinds = "langchain", (BaseLanguageModel, Runnable)
    model: Runnable[Any, Any]

    def _ask(self, messages: Sequence[Message], schema: Mapping[str, object] | None) -> Reply:
        model = self.model
        if schema is not None:
            if not isinstance(model, BaseLanguageModel):
                raise NotImplementedError  # a sequence of runnables has no such method
            model = model.with_structured_output(titled(schema), include_raw=True)
        return _read(model.invoke([(turn["role"], turn["content"]) for turn in messages]))


def _read(answer: object) -> Reply:
    if isinstance(answer, dict) and "raw" in answer:
        raw, parsed = answer["raw"], answer.get("parsed")
        reply, text = _read(raw), json_text(parsed)
        if parsed is None:  # the answer was unreadable: keep its text
            calls = getattr(raw, "tool_calls", None)
            text = reply.text or (json_text(calls[0].get("args")) if calls else "")
        return Reply(text, reply.finish, reply.input_tokens, reply.output_tokens)
    if isinstance(answer, BaseMessage):
        metadata = getattr(answer, "usage_metadata", None)
        return reply_of(
            str(answer.text), metadata, answer.response_metadata, answer.additional_kwargs
        )
    return reply_of(answer)
