"""Scores for any LangChain retriever, or runnable from a question to documents, as it is deployed."""

from __future__ import annotations

from functools import partial
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable

from chunkadapters._models.identity import secrets_within
from chunkadapters._retrieval import Piece, RetrieverHooks, System, settings_mark
from chunkadapters.langchain.pieces import piece_of
from chunkcore.errors import DataError

__all__ = ["aevaluate_retriever", "arun_retriever", "evaluate_retriever", "run_retriever"]


def _system(retriever: Runnable[str, list[Document]]) -> System:
    if isinstance(retriever, Runnable):
        return System(
            name=retriever.get_name(),
            ask=retriever.invoke,
            aask=retriever.ainvoke,
            settings=partial(settings_mark, retriever, _is_part),
            secrets=partial(secrets_within, retriever),
        )
    if hasattr(retriever, "as_retriever"):
        raise DataError(f"{type(retriever).__name__} is a store, not a retriever: pass its .as_retriever()")
    raise DataError(
        f"expected a LangChain retriever or runnable, got {type(retriever).__name__}; "
        "wrap a function as RunnableLambda(function)"
    )


def _is_part(value: Any) -> bool:
    return isinstance(value, Runnable | Embeddings)


def _pieces(answer: Any) -> list[Piece]:
    if isinstance(answer, list | tuple):
        return [piece_of(each) for each in answer]
    keys = isinstance(answer, dict) and ", ".join(map(str, answer))
    hint = f" with the keys {keys}; .pick() the documents' key" if keys else ""
    raise DataError(f"expected a list of LangChain documents, got a {type(answer).__name__}{hint}")


_hooks: RetrieverHooks[Runnable[str, list[Document]], Document] = RetrieverHooks(_system, _pieces)
run_retriever = _hooks.run_retriever
arun_retriever = _hooks.arun_retriever
evaluate_retriever = _hooks.evaluate_retriever
aevaluate_retriever = _hooks.aevaluate_retriever
