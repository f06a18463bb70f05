"""Scores for any LlamaIndex retriever, as it is deployed."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import BaseNode

from chunkadapters._retrieval import Piece, RetrieverHooks, System
from chunkadapters.llamaindex.pieces import piece_of
from chunkcore.errors import DataError

__all__ = ["aevaluate_retriever", "arun_retriever", "evaluate_retriever", "run_retriever"]


def _system(retriever: BaseRetriever) -> System:
    if isinstance(retriever, BaseRetriever):
        return System(type(retriever).__name__, retriever.retrieve, retriever.aretrieve)
    if hasattr(retriever, "as_retriever"):
        raise DataError(f"{type(retriever).__name__} is an index, not a retriever: pass its .as_retriever()")
    raise DataError(f"expected a LlamaIndex retriever, got {type(retriever).__name__}; subclass BaseRetriever")


def _pieces(answer: Any) -> list[Piece]:
    if not isinstance(answer, list | tuple):
        raise DataError(f"expected a list of nodes with scores, got a {type(answer).__name__}")
    return [piece_of(each) for each in answer]


_hooks: RetrieverHooks[BaseRetriever, BaseNode] = RetrieverHooks(_system, _pieces)
run_retriever = _hooks.run_retriever
arun_retriever = _hooks.arun_retriever
evaluate_retriever = _hooks.evaluate_retriever
aevaluate_retriever = _hooks.aevaluate_retriever
