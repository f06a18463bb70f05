"""LlamaIndex' models as chunkcore's, and chunkcore's embedders as LlamaIndex'."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from llama_index.core.bridge.pydantic import BaseModel, PrivateAttr
from llama_index.core.callbacks import CallbackManager
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import LLM, ChatMessage, ChatResponse
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.tools import FunctionTool, ToolMetadata

from chunkadapters.models import BridgedEmbedder, BridgedLLM, embedded, json_text, titled
from chunkcore.models import DEFAULT_MODEL, Embedder, get_embedder
from chunkcore.models.endpoint import reply_of
from chunkcore.models.llm.base import Messages, Reply, Schema


class ChunkcoreEmbedding(BaseEmbedding):
    """A chunkcore embedder as LlamaIndex' embedding model.

    For chunkcore's own models, and for its cache before any other: ``ChunkcoreEmbedding(CachedEmbedder(
    as_embedder(OpenAIEmbedding()), EmbeddingCache("vectors.sqlite")))`` embeds each text once.

    Args:
        embedder: an embedder or its name, which a configuration holds. Raises `OptionError`: unknown model.
        embed_batch_size, num_workers, callback_manager, embeddings_cache: LlamaIndex' own.
        model_name: of a configuration, instead of `embedder`.

    >>> from llama_index.core import MockEmbedding
    >>> ChunkcoreEmbedding(as_embedder(MockEmbedding(embed_dim=2))).get_text_embedding("tea")
    [0.5, 0.5]
    """

    _embedder: Embedder = PrivateAttr()

    def __init__(
        self,
        embedder: Embedder | str = DEFAULT_MODEL,
        *,
        embed_batch_size: int = 256,
        num_workers: int | None = None,
        callback_manager: CallbackManager | None = None,
        embeddings_cache: object = None,
        model_name: str = "",
    ) -> None:
        core_embedder = get_embedder(model_name or embedder)
        super().__init__(
            model_name=core_embedder.name,
            embed_batch_size=embed_batch_size,
            num_workers=num_workers,
            callback_manager=callback_manager or CallbackManager([]),
            embeddings_cache=embeddings_cache,
        )
        self._embedder = core_embedder

    @classmethod
    def class_name(cls) -> str:
        return "ChunkcoreEmbedding"

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return embedded(self._embedder, texts)

    def _get_query_embedding(self, query: str) -> list[float]:
        return embedded(self._embedder, [query], queries=True)[0]

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)


def as_embedder(
    embed_model: BaseEmbedding,
    *,
    fingerprint: str | None = None,
    max_tokens: int | None = None,
) -> BridgedEmbedder:
    """Any LlamaIndex embedding model as an `Embedder`, for chunkers, indexes, caches and comparisons.

    `ChunkcoreNodeParser` takes LlamaIndex' models as they are; wrap them elsewhere:
    ``CachedEmbedder(as_embedder(OpenAIEmbedding()))``. Options: see `BridgedEmbedder`.

    Raises:
        OptionError: no LlamaIndex embedding model, or a fingerprint is required, because its settings name no model.

    >>> from llama_index.core import MockEmbedding
    >>> embedder = as_embedder(MockEmbedding(embed_dim=8))
    >>> embedder.name, embedder.embed_documents(["tea", "coffee"]).shape
    ('llamaindex:MockEmbedding', (2, 8))
    """
    return _Embedder(embed_model, fingerprint, max_tokens)


def as_llm(
    llm: LLM,
    *,
    fingerprint: str | None = None,
    concurrency: int = 1,
) -> BridgedLLM:
    """Any LlamaIndex `LLM` as chunkcore's.

    A function-calling model gets a JSON schema as the parameters of a function that it must call; other models are
    asked in words. Token counts are the service's, if the integration passes them on. Options: see `BridgedLLM`.

    Raises `OptionError`: no LlamaIndex LLM, a fingerprint is required, or concurrency is under 1.

    >>> from llama_index.core.llms import MockLLM
    >>> as_llm(MockLLM()).complete([{"role": "user", "content": "Tea?"}]).finish
    'stop'
    """
    return _LLM(llm, fingerprint, concurrency)


def as_model(value: object) -> Any:
    """An option's value: LlamaIndex' models as chunkcore's, others unchanged."""
    if isinstance(value, BaseEmbedding):
        return as_embedder(value)
    return as_llm(value) if isinstance(value, LLM) else value


class _Embedder(BridgedEmbedder):
    framework, kinds = "llamaindex", (BaseEmbedding,)
    methods = ("get_text_embedding_batch", "get_query_embedding")


class _LLM(BridgedLLM):
    framework, kinds = "llamaindex", (LLM,)
    model: LLM

    def _ask(self, messages: Messages, schema: Schema | None) -> Reply:
        if schema is None:
            return _read(self.model.chat(_turns(messages)))
        model = self.model
        if not (isinstance(model, FunctionCallingLLM) and model.metadata.is_function_calling_model):
            raise NotImplementedError
        response = model.chat_with_tools(
            [_answering(schema)], chat_history=_turns(messages), tool_required=True
        )
        reply = _read(response)
        calls = model.get_tool_calls_from_response(response, error_on_no_tool_call=False)
        return replace(reply, text=json_text(calls[0].tool_kwargs)) if calls else reply


def _turns(messages: Messages) -> list[ChatMessage]:
    return [ChatMessage(**turn) for turn in messages]


def _read(response: ChatResponse) -> Reply:
    message, raw = response.message, response.raw
    choices = raw.get("choices") if isinstance(raw, Mapping) else getattr(raw, "choices", None)
    choice = choices[0] if isinstance(choices, list) and choices else None
    return reply_of(
        message.content or "", raw, choice, response.additional_kwargs, message.additional_kwargs
    )


def _answering(schema: Schema) -> FunctionTool:
    whole = titled(schema)

    class Answer(BaseModel):
        """Integrations read the parameters from the class's schema."""

        @classmethod
        def model_json_schema(cls, *arguments: Any, **options: Any) -> dict[str, Any]:
            return dict(whole)

    def answer(**arguments: Any) -> str:
        return json_text(arguments)

    return FunctionTool(
        fn=answer, metadata=ToolMetadata(whole["description"], whole["title"], Answer)
    )
