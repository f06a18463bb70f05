"""Scores for any LlamaIndex retriever, as it is deployed."""

from __future__ import annotations

from functools import partial
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from chunkadapters._models.identity import secrets_within
from chunkadapters._retrieval import Piece, RetrieverHooks, System, settings_mark
from chunkadapters.llamaindex.pieces import piece_of
from chunkcore.errors import DataError

__all__ = ["aevaluate_retriever", "arun_retriever", "evaluate_retriever", "run_retriever"]


def _system(retriever: BaseRetriever) -> System:
    if isinstance(retriever, BaseRetriever):
        return System(
            name=type(retriever).__name__,
            ask=retriever.retrieve,
            aask=retriever.aretrieve,
            settings=partial(settings_mark, retriever, _is_part),
            secrets=partial(secrets_within, retriever),
        )
    if hasattr(retriever, "as_retriever"):
        raise DataError(f"{type(retriever).__name__} is an index, not a retriever: pass its .as_retriever()")
    raise DataError(f"expected a LlamaIndex retriever, got {type(retriever).__name__}; subclass BaseRetriever")


def _is_part(value: Any) -> bool:
    return isinstance(value, BaseRetriever | BaseEmbedding | MetadataFilters | MetadataFilter)


def _pieces(answer: Any) -> list[Piece]:
    if not isinstance(answer, list | tuple):
        raise DataError(f"expected a list of nodes with scores, got a {type(answer).__name__}")
    return [piece_of(each) for each in answer]


_hooks: RetrieverHooks[BaseRetriever, BaseNode] = RetrieverHooks(_system, _pieces)
run_retriever = _hooks.run_retriever
arun_retriever = _hooks.arun_retriever
evaluate_retriever = _hooks.evaluate_retriever
aevaluate_retriever = _hooks.aevaluate_retriever
