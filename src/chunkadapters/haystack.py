"""chunkcore inside Haystack: a document splitter for any chunker, and scores for any retriever or pipeline.

splitter = ChunkcoreDocumentSplitter(strategy="recursive", options={"size": 200})
pipeline.add_component("splitter", splitter)
report = evaluate_retriever(pipeline, benchmark)
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from chunkadapters._retrieval import Piece, Progress, RetrieverHooks, Settings, System, names, stated_spans
from chunkadapters._told import DERIVED
from chunkcore.errors import DataError, MissingExtraError, OptionError
from chunkcore.evaluation.benchmark import Benchmark
from chunkcore.evaluation.run import Run

try:
    from haystack import Document, Pipeline
except ImportError as error:
    raise MissingExtraError.of("haystack-ai", "haystack", "split for Haystack") from error

from chunkadapters._haystack_sockets import (
    Socket,
    Sockets,
    component_sockets,
    find_documents,
    find_queries,
    pipeline_sockets,
)
from haystack_integrations.components.preprocessors.chunkadapters import ChunkcoreDocumentSplitter

__all__ = [
    "ChunkcoreDocumentSplitter",
    "aevaluate_retriever",
    "arun_retriever",
    "evaluate_retriever",
    "run_retriever",
]

# Where Haystack's converters and fetchers, and users, write down what a document is called.
_NAMING_KEYS = ("file_path", "file_name", "name", "source", "path", "url", "title", "id")


@dataclass(frozen=True, slots=True)
class _PipelineSystem:
    """A pipeline, the sockets that take the question, and the one whose documents count."""

    pipeline: Pipeline
    queries: Sequence[Socket]
    documents: Socket
    inputs: Mapping[str, Mapping[str, Any]]

    def ask(self, query: str) -> Any:
        return self._documents(self.pipeline.run(self._data(query), include_outputs_from={self.documents.component}))

    async def ask_async(self, query: str) -> Any:
        outputs = {self.documents.component}
        return self._documents(await self.pipeline.run_async(self._data(query), include_outputs_from=outputs))

    def _data(self, query: str) -> dict[str, dict[str, Any]]:
        data = {component: dict(values) for component, values in self.inputs.items()}
        for socket in self.queries:
            data.setdefault(socket.component, {})[socket.name] = _question(socket, query)
        return data

    def _documents(self, result: Mapping[str, Any]) -> Any:
        # A router may have led the question elsewhere: then the answer is nothing.
        return result.get(self.documents.component, {}).get(self.documents.name, [])


@dataclass(frozen=True, slots=True)
class _ComponentSystem:
    """A retriever component; `embedding` is the input that takes the question's vector, where one does."""

    component: Any
    queries: Sequence[Socket]
    documents: Socket
    inputs: Mapping[str, Any]
    embedding: Socket | None = None
    embedder: _Embedder | None = None

    def ask(self, query: str) -> Any:
        values = self._values(query)
        if self.embedder is not None and self.embedding is not None:
            values[self.embedding.name] = self.embedder.embed(query)
        return self.component.run(**values)[self.documents.name]

    async def ask_async(self, query: str) -> Any:
        values = self._values(query)
        if self.embedder is not None and self.embedding is not None:
            values[self.embedding.name] = await self.embedder.embed_async(query)
        return (await _run_async(self.component, values))[self.documents.name]

    def _values(self, query: str) -> dict[str, Any]:
        return {**self.inputs, **{socket.name: _question(socket, query) for socket in self.queries}}


@dataclass(frozen=True, slots=True)
class _Embedder:
    """A text embedder component, the input that it takes text by, and the output of its vector."""

    component: Any
    text: Socket
    vector: Socket = field(repr=False)

    def embed(self, query: str) -> Any:
        return self.component.run(**{self.text.name: query})[self.vector.name]

    async def embed_async(self, query: str) -> Any:
        return (await _run_async(self.component, {self.text.name: query}))[self.vector.name]


async def _run_async(component: Any, values: dict[str, Any]) -> Mapping[str, Any]:
    if getattr(component, "__haystack_supports_async__", False):
        return cast("Mapping[str, Any]", await component.run_async(**values))
    return cast("Mapping[str, Any]", await asyncio.to_thread(component.run, **values))


def _question(socket: Socket, query: str) -> Any:
    return [query] if socket.holds(list[str]) and not socket.holds(str) else query


def _system(
    retriever: Any,
    text_embedder: Any,
    query_socket: str | Sequence[str] | None,
    documents_socket: str | None,
    inputs: Mapping[str, Any] | None,
) -> System:
    given = dict(inputs or {})
    asked: _PipelineSystem | _ComponentSystem
    if isinstance(retriever, Pipeline):
        if text_embedder is not None:
            raise OptionError("a pipeline embeds the question itself: connect the text embedder in it")
        sockets = pipeline_sockets(retriever)
        queries = find_queries(sockets, query_socket)
        documents = find_documents(sockets, documents_socket)
        _check_inputs(sockets, queries, {f"{component}.{key}" for component, values in given.items() for key in values})
        retriever.warm_up()
        asked = _PipelineSystem(retriever, queries, documents, given)
    elif _is_component(retriever):
        asked = _component_system(retriever, text_embedder, query_socket, documents_socket, given)
    else:
        hint = "; a store is asked through its retriever" if hasattr(retriever, "filter_documents") else ""
        raise DataError(f"expected a Haystack component or Pipeline, got {type(retriever).__name__}{hint}")
    return System(type(retriever).__name__, asked.ask, asked.ask_async)


def _component_system(
    retriever: Any,
    text_embedder: Any,
    query_socket: str | Sequence[str] | None,
    documents_socket: str | None,
    given: dict[str, Any],
) -> _ComponentSystem:
    sockets = component_sockets(retriever)
    documents = find_documents(sockets, documents_socket)
    vectors = [each for each in sockets.inputs if each.mandatory and each.holds(list[float])]
    embedding = vectors[0] if vectors else None
    if embedding is None and text_embedder is not None:
        raise OptionError(f"{type(retriever).__name__} takes no embedding: leave text_embedder out")
    if embedding is not None and text_embedder is None:
        raise OptionError(
            f"{type(retriever).__name__} takes an embedding ({embedding}): give the text_embedder that goes with "
            "its index, or the pipeline that holds both"
        )
    texts = any(each.mandatory and each.holds(str) for each in sockets.inputs)
    queries = [] if embedding and not texts and query_socket is None else find_queries(sockets, query_socket)
    _check_inputs(sockets, [*queries, *vectors[:1]], set(given))
    embedder = None if text_embedder is None else _embedder(text_embedder)
    _warm_up(retriever)
    return _ComponentSystem(retriever, queries, documents, given, embedding, embedder)


def _embedder(component: Any) -> _Embedder:
    if not _is_component(component):
        raise DataError(f"text_embedder: expected a Haystack text embedder, got {type(component).__name__}")
    sockets = component_sockets(component)
    vectors = [socket for socket in sockets.outputs if socket.holds(list[float])]
    if not vectors:
        raise DataError(
            f"text_embedder: {type(component).__name__} gives no single embedding; a document embedder embeds "
            "documents, the question needs the text embedder that goes with it"
        )
    text = find_queries(sockets, None)[0]
    _warm_up(component)
    return _Embedder(component, text, vectors[0])


def _is_component(candidate: Any) -> bool:
    return hasattr(candidate, "__haystack_input__") and hasattr(candidate, "__haystack_output__")


def _warm_up(component: Any) -> None:
    if hasattr(component, "warm_up"):
        component.warm_up()


def _check_inputs(sockets: Sockets, queries: Sequence[Socket], given: set[str]) -> None:
    """Every mandatory input is the question's or given, and nothing is given that is not there."""
    known = {str(socket) for socket in sockets.inner_inputs}
    if unknown := sorted(given - known):
        raise OptionError(f"inputs: there is no {', '.join(unknown)}; expected some of {', '.join(sorted(known))}")
    covered = given | {str(socket) for socket in queries}
    missing = [str(socket) for socket in sockets.inputs if socket.mandatory and str(socket) not in covered]
    if missing:
        raise OptionError(
            f"nothing is given for the mandatory {', '.join(missing)}: say what, as inputs={{...}}, "
            "or name it among query_socket if it takes the question too"
        )


class _Hooks(RetrieverHooks[Any, Document]):
    def system(self, retriever: Any) -> System:
        return _system(retriever, None, None, None, None)

    def pieces(self, answer: Any) -> list[Piece]:
        if not isinstance(answer, list | tuple):
            raise DataError(f"expected a list of Haystack documents, got a {type(answer).__name__}")
        return [_piece(each) for each in answer]

    def run_retriever(
        self,
        retriever: Any,
        benchmark: Benchmark,
        *,
        text_embedder: Any = None,
        query_socket: str | Sequence[str] | None = None,
        documents_socket: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        name: str | None = None,
        pool: Iterable[Document] | None = None,
        retries: int = 2,
        retry_wait: float = 0.5,
        progress: Progress | None = None,
    ) -> Run:
        """Ask a retriever or a whole pipeline every question of a benchmark, and locate what it answers.

        Nothing is indexed again and nothing in the pipeline is changed. An answer is located by its metadata
        where they hold (``source_id``, ``file_path`` or another name of the document, with ``split_idx_start``), and
        by its text otherwise.

        Args:
            retriever: a retriever component, or a `Pipeline`. A pipeline is run to its end: leave out a
                generator that costs money.
            benchmark: whose documents are, or contain, what the retriever answers with.
            text_embedder: a text embedder component, for a retriever component that takes an embedding.
            query_socket: the input that takes the question, ``"component.input"`` in a pipeline and ``"input"`` of
                a component; several where the question goes to several. By default the only mandatory string.
            documents_socket: the output whose documents count, likewise; it may be connected to something. By
                default the only output of documents.
            inputs: everything else to run with, such as ``{"retriever": {"top_k": 20}}`` for a pipeline and
                ``{"top_k": 20}`` for a component.
            name: the system's name in tables; the component's class or ``Pipeline`` by default.
            pool: every document that the retriever could have answered with, if PrecisionOmega or k = "min" is
                wanted: ``document_store.filter_documents()``.
            retries: how often a question is asked again after an exception.
            retry_wait: seconds before the first of these; each further wait is twice as long.
            progress: called as ``progress("retrieve", done, total)``.

        Returns:
            The run. Questions that failed to the last are in `Run.failures` with their reasons, and warned about.

        Raises:
            OptionError: the sockets cannot be told (the message names the candidates), or an input is missing.
            DataError: `retriever` is no component or pipeline, or answers with something that is no list of
                documents.
            ModelError: every question failed.
        """
        system = _system(retriever, text_embedder, query_socket, documents_socket, inputs)
        return self._run(system, benchmark, name, pool, Settings(retries, retry_wait, progress=progress))

    async def arun_retriever(
        self,
        retriever: Any,
        benchmark: Benchmark,
        *,
        text_embedder: Any = None,
        query_socket: str | Sequence[str] | None = None,
        documents_socket: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        name: str | None = None,
        pool: Iterable[Document] | None = None,
        concurrency: int = 8,
        retries: int = 2,
        retry_wait: float = 0.5,
        progress: Progress | None = None,
    ) -> Run:
        """`run_retriever` by ``run_async``, with at most `concurrency` questions under way."""
        system = _system(retriever, text_embedder, query_socket, documents_socket, inputs)
        return await self._arun(system, benchmark, name, pool, Settings(retries, retry_wait, concurrency, progress))


def _piece(document: Any) -> Piece:
    if not isinstance(document, Document):
        raise DataError(f"expected Haystack documents, got a {type(document).__name__} among the answers")
    told, text = document.meta, document.content or ""
    rooted = isinstance(told.get("root_source_id"), str)
    prefix, several = ("root_idx_", "root_spans") if rooted else ("split_idx_", "spans")
    return Piece(
        text=text,
        score=float(document.score) if document.score is not None else 0.0,
        document_ids=names(
            told.get("root_source_id"), told.get("source_id"), document.id, *(told.get(key) for key in _NAMING_KEYS)
        ),
        derived=told.get(DERIVED) is True,
        spans=stated_spans(told.get(several), told.get(f"{prefix}start"), told.get(f"{prefix}end"), text),
    )


_hooks = _Hooks()
run_retriever = _hooks.run_retriever
arun_retriever = _hooks.arun_retriever
evaluate_retriever = _hooks.evaluate_retriever
aevaluate_retriever = _hooks.aevaluate_retriever
