"""Scores for any LlamaIndex retriever or query engine, as it is deployed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, QueryBundle
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from chunkadapters._models.identity import secrets_within
from chunkadapters._retrieval import Piece, RetrieverHooks, System, settings_mark
from chunkadapters.llamaindex.pieces import piece_of
from chunkcore.errors import DataError

__all__ = ["aevaluate_retriever", "arun_retriever", "evaluate_retriever", "run_retriever"]


def _system(retriever: BaseRetriever | BaseQueryEngine) -> System:
    if isinstance(retriever, BaseRetriever):
        return _told(retriever, retriever.retrieve, retriever.aretrieve)
    if isinstance(retriever, BaseQueryEngine):
        return _of_engine(retriever)
    if hasattr(retriever, "as_retriever"):
        raise DataError(f"{type(retriever).__name__} is an index, not a retriever: pass its .as_retriever()")
    raise DataError(f"expected a LlamaIndex retriever, got {type(retriever).__name__}; subclass BaseRetriever")


def _of_engine(engine: BaseQueryEngine) -> System:
    """What a query engine retrieves, after its post-processors; no answer is written."""
    if type(engine).retrieve is BaseQueryEngine.retrieve:
        raise DataError(f"{type(engine).__name__} does not tell what it retrieves: pass its retriever")
    asynchronous = getattr(engine, "aretrieve", None)

    def ask(question: str) -> Any:
        return engine.retrieve(QueryBundle(question))

    async def aask(question: str) -> Any:
        if asynchronous is None:
            return await asyncio.to_thread(ask, question)
        return await asynchronous(QueryBundle(question))

    return _told(engine, ask, aask)


def _told(asked: Any, ask: Callable[[str], Any], aask: Callable[[str], Awaitable[Any]]) -> System:
    return System(
        name=type(asked).__name__,
        ask=ask,
        aask=aask,
        settings=partial(settings_mark, asked, _is_part),
        secrets=partial(secrets_within, asked),
    )


_PARTS = (BaseRetriever, BaseQueryEngine, BaseNodePostprocessor, BaseEmbedding, MetadataFilters, MetadataFilter)


def _is_part(value: Any) -> bool:
    return isinstance(value, _PARTS)


def _pieces(answer: Any) -> list[Piece]:
    if not isinstance(answer, list | tuple):
        raise DataError(f"expected a list of nodes with scores, got a {type(answer).__name__}")
    return [piece_of(each) for each in answer]


_hooks: RetrieverHooks[BaseRetriever | BaseQueryEngine, BaseNode] = RetrieverHooks(_system, _pieces)
run_retriever = _hooks.run_retriever
arun_retriever = _hooks.arun_retriever
evaluate_retriever = _hooks.evaluate_retriever
aevaluate_retriever = _hooks.aevaluate_retriever
