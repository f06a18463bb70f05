"""Haystack's retrievers and pipelines, run and scored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from haystack import Document, Pipeline
from haystack.core.component import Component
from typing_extensions import Unpack

from chunkadapters.behind import Behind
from chunkadapters.haystack.documents import (
    Outputs,
    Socket,
    Values,
    find_documents,
    find_queries,
    hit_of,
    is_component,
    pipeline_sockets,
    run,
    run_async,
    sockets_of,
    warm_up,
)
from chunkadapters.models import at_once, finished
from chunkadapters.scores import DeployedRetriever, RetrieverHooks, RunOptions, ScoreOptions
from chunkcore.errors import DataError, OptionError, kind_of
from chunkcore.options import suggesting
from chunkcore.run import Run

if TYPE_CHECKING:
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark
    from chunkcore.evaluation.results import Report


def with_filter(
    retriever: Component | Pipeline, given: Values, where: Mapping[str, object]
) -> Values:
    """The inputs with the filter of one question, beside the filters that the app has of its own.

    Raises `OptionError`: a retriever inside has no input for it.
    """
    conditions = []
    for key, value in where.items():
        conditions.append({"field": f"meta.{key}", "operator": "==", "value": value})
    if not isinstance(retriever, Pipeline):
        name = type(retriever).__name__
        return _filtered(given, retriever, name, sockets_of(retriever).inputs, conditions)
    values = dict(given)
    for name in _sources(retriever):
        part = retriever.get_component(name)
        inputs = sockets_of(part, name).inputs
        values[name] = _filtered(values.get(name, {}), part, name, inputs, conditions)
    return values


def _filtered(
    values: Values,
    component: object,
    name: str,
    inputs: Iterable[Socket],
    conditions: Sequence[object],
) -> Values:
    if not any(socket.name == "filters" and socket.free for socket in inputs):
        raise OptionError(
            f"a question has a filter (where), and {name} has no free input called filters"
        )
    filters = values.get("filters")
    for attribute in ("filters", "_filters"):
        filters = filters or getattr(component, attribute, None)
    if filters:
        conditions = [filters, *conditions]
    (chosen, *others) = conditions
    if others:  # some stores refuse a lone condition under AND
        chosen = {"operator": "AND", "conditions": [chosen, *others]}
    return {**values, "filters": chosen}


def _sources(pipeline: Pipeline) -> list[str]:
    """The components that bring documents into a pipeline: from outside, or from a store."""
    fed = set()
    for sender, receiver, edge in pipeline.graph.edges(data=True):
        sent = Socket(sender, "", edge["from_socket"].type)
        if sent.type is Any or sent.holds(list[Document]):
            fed.add(receiver)
    names = []
    for name in pipeline.graph.nodes:
        part = pipeline.get_component(name)
        gives = any(socket.holds(list[Document]) for socket in sockets_of(part).outputs)
        if hasattr(part, "show") and hasattr(part, "local_index"):  # a ranker of passages
            options: Any = part
            behind = Behind.of(options, options.local_index)
            behind.check_call(["the filter of a question (where)"])
        if gives and (name not in fed or hasattr(part, "document_store")):
            names.append(name)
    return names


def _system(
    retriever: Component | Pipeline,
    text_embedder: Component | None = None,
    query_socket: str | Sequence[str] | None = None,
    documents_socket: str | None = None,
    inputs: Mapping[str, object] | None = None,
) -> DeployedRetriever:
    """A retriever component, or a `Pipeline`; docs/guides/haystack.md has the options."""
    given: Values = dict(inputs or {})
    parts: list[object] = [retriever, text_embedder, given]
    embedding: _Embedding | None = None
    if isinstance(retriever, Pipeline):
        if text_embedder is not None:
            raise OptionError(
                "a pipeline embeds the question itself: connect the text embedder in it"
            )
        sockets, constant = pipeline_sockets(retriever), given
        parts += [retriever.get_component(name) for name in retriever.graph.nodes]
    elif is_component(retriever):
        sockets, constant = sockets_of(retriever), {"": given}
        embedding = _embedding(retriever, sockets.inputs, text_embedder)
    else:
        raise DataError(
            f"expected a Haystack component or Pipeline, got {kind_of(retriever)}; a store is asked through its "
            "retriever"
        )
    queries = _queries(sockets.inputs, query_socket, embedding)
    documents = find_documents(sockets.outputs, documents_socket)
    asked = _Asked(retriever, constant, queries, documents, text_embedder, embedding)
    asked.check_inputs(sockets.inputs)
    warm_up(retriever)

    def filtered(where: Mapping[str, object]) -> DeployedRetriever:
        narrowed = with_filter(retriever, given, where)
        return _system(retriever, text_embedder, query_socket, documents_socket, narrowed)

    return DeployedRetriever(type(retriever).__name__, asked.ask, asked.aask, parts, filtered)


def _queries(
    inputs: Sequence[Socket], query_socket: str | Sequence[str] | None, embedding: _Embedding | None
) -> list[Socket]:
    """The inputs that take the question as a text; none of a component that takes its vector alone."""
    takes_text = any(socket.holds(str) for socket in inputs if socket.mandatory)
    if embedding is not None and query_socket is None and not takes_text:
        return []
    return find_queries(inputs, query_socket)


@dataclass(frozen=True)
class _Asked:
    """A component or a pipeline, and how it is asked: `constant` has the inputs of every question, by component."""

    retriever: Component | Pipeline
    constant: Mapping[str, Values]
    queries: Sequence[Socket]
    documents: Socket
    embedder: Component | None
    embedding: _Embedding | None

    def check_inputs(self, inputs: Sequence[Socket]) -> None:
        """Raise `OptionError` unless every mandatory input has a value, and every constant one is there."""
        constant = set()
        for component, values in self.constant.items():
            constant |= {str(Socket(component, key, None)) for key in values}
        names = {str(socket) for socket in inputs}
        unknown = sorted(constant - names)
        if unknown:
            raise OptionError(
                f"inputs: there is no {', '.join(unknown)}; expected some of {', '.join(sorted(names))}"
            )
        answered = set(map(str, self.queries))
        if self.embedding is not None:
            answered.add(str(self.embedding.vector))
        needed = {str(socket) for socket in inputs if socket.free and socket.mandatory}
        missing = sorted(needed - constant - answered)
        if missing:
            raise OptionError(
                f"nothing is given for the mandatory {', '.join(missing)}: say what, as inputs={{...}}, "
                "or name it among query_socket if it takes the question too"
            )

    def ask(self, question: str) -> object:
        return finished(self._answer(question, at_once(run)))

    async def aask(self, question: str) -> object:
        return await self._answer(question, run_async)

    async def _answer(self, question: str, run: Callable[..., Awaitable[Outputs]]) -> object:
        data = {component: dict(values) for component, values in self.constant.items()}
        for socket in self.queries:
            takes_list = socket.holds(list[str]) and not socket.holds(str)
            value = [question] if takes_list else question
            data.setdefault(socket.component, {})[socket.name] = value
        if self.embedding is not None:
            vector, text, output = self.embedding
            embedded = await run(self.embedder, {text: question})
            data[""][vector.name] = embedded[output]
        documents = self.documents
        if not isinstance(self.retriever, Pipeline):
            return (await run(self.retriever, data[""]))[documents.name]
        outer = {documents.component}
        result = await run(self.retriever, {"data": data, "include_outputs_from": outer})
        # Nothing, if a router led the question elsewhere.
        return result.get(documents.component, {}).get(documents.name, [])


class _Embedding(NamedTuple):
    """The input of a retriever that takes the question's vector, and the sockets of the component that makes it."""

    vector: Socket
    text: str
    output: str


def _embedding(
    retriever: Component, inputs: Sequence[Socket], embedder: Component | None
) -> _Embedding | None:
    name = type(retriever).__name__
    wanted = [socket for socket in inputs if socket.mandatory and socket.holds(list[float])]
    if embedder is None and not wanted:
        return None
    if not wanted:
        raise OptionError(f"{name} takes no embedding: leave text_embedder out")
    if embedder is None:
        raise OptionError(
            f"{name} takes an embedding ({wanted[0]}): give the text_embedder that goes with its index, or the "
            "pipeline that holds both"
        )
    if not is_component(embedder):
        raise DataError(
            f"text_embedder: expected a Haystack text embedder, got {type(embedder).__name__}"
        )
    texts, outputs = sockets_of(embedder)
    vectors = [socket for socket in outputs if socket.holds(list[float])]
    if not vectors:
        raise DataError(
            f"text_embedder: {type(embedder).__name__} gives no single embedding; a document embedder embeds "
            "documents, the question needs the text embedder that goes with it"
        )
    warm_up(embedder)
    return _Embedding(wanted[0], find_queries(texts, None)[0].name, vectors[0].name)


class AskOptions(TypedDict, total=False):
    """How a component or a pipeline is asked; see `run_retriever`."""

    text_embedder: Component | None
    query_socket: str | Sequence[str] | None
    documents_socket: str | None
    inputs: Mapping[str, object] | None


class HaystackRunOptions(AskOptions, RunOptions, total=False):
    """How a component or a pipeline is asked, and run."""


class HaystackScoreOptions(ScoreOptions, AskOptions, total=False):
    """How a component or a pipeline is asked, run and scored."""


_hooks: RetrieverHooks[Component | Pipeline] = RetrieverHooks(
    _system, hit_of, Document, "Haystack documents", asking=AskOptions.__annotations__
)


@suggesting
def run_retriever(
    retriever: Component | Pipeline,
    benchmark: Benchmark | str,
    **options: Unpack[HaystackRunOptions],
) -> Run:
    """Ask a retriever, or a whole pipeline, every question of a benchmark, and locate its hits.

    Args:
        retriever: a component, or a `Pipeline`, which is run to its end: leave out a generator that costs money.
        benchmark: whose documents the retriever searches; or the name of a collection that ships with chunkcore.
        text_embedder: embeds the questions for a component that takes an embedding.
        query_socket: the inputs that take the question, ``"component.input"`` of a pipeline; by default the only
            mandatory string.
        documents_socket: the output that counts; by default the only one of documents.
        inputs: what every run gets besides, such as ``{"retriever": {"top_k": 20}}``.
        pool, name, retries, retry_wait, progress: see `chunkadapters.scores.RetrieverHooks.run_retriever`, as for what
            is returned and raised.

    A question's filter (`Query.where`) goes to the ``filters`` of every retriever inside, beside its own filters. It is
    refused where one of them would not get it.
    """
    return finished(_hooks.run(retriever, benchmark, options))


@suggesting
async def arun_retriever(
    retriever: Component | Pipeline,
    benchmark: Benchmark | str,
    *,
    concurrency: int = 8,
    **options: Unpack[HaystackRunOptions],
) -> Run:
    """`run_retriever` by the asynchronous method, with at most `concurrency` questions at a time."""
    return await _hooks.run(retriever, benchmark, options, concurrency)


@suggesting
def evaluate_retriever(
    retriever: Component | Pipeline,
    benchmark: Benchmark | str,
    **options: Unpack[HaystackScoreOptions],
) -> Report:
    """Score a deployed retriever, or a whole pipeline.

    Args:
        retriever: see `run_retriever`, which has further options, from `text_embedder` on.
        benchmark: documents, questions and evidence; or the name of a collection that ships with chunkcore.
        measures: one or a list, such as ``["Recall@1000tok", "Precision@5"]``; by default Recall, Precision, IoU and
            F1 at `k`, and PrecisionOmega if there is a `pool`.
        k: the depths of the default measures: an equal budget of tokens first, then so many hits; by default
            ``("1000tok", 5)``.
        counter: the tokenizer; by default "cl100k_base".

    Raises `OptionError`, before any question is asked: an unknown measure, depth or counter.
    """
    return finished(_hooks.report(retriever, benchmark, options))


@suggesting
async def aevaluate_retriever(
    retriever: Component | Pipeline,
    benchmark: Benchmark | str,
    *,
    concurrency: int = 8,
    **options: Unpack[HaystackScoreOptions],
) -> Report:
    """`evaluate_retriever` by the asynchronous method, with at most `concurrency` questions at a time."""
    return await _hooks.report(retriever, benchmark, options, concurrency)
