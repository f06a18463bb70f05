"""Haystack's retrievers and pipelines, run and scored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, cast

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
from chunkadapters.scores import (
    Ask,
    AsyncAsk,
    DeployedRetriever,
    RetrieverHooks,
    RunOptions,
    ScoreOptions,
    check_foreign,
)
from chunkcore.errors import DataError, OptionError, kind_of
from chunkcore.options import suggesting
from chunkcore.run import Run

if TYPE_CHECKING:
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark
    from chunkcore.evaluation.results import Report


def with_filter(
    retriever: Component | Pipeline, constant: Values, where: Mapping[str, object]
) -> Values:
    """The inputs with the filter of one question, beside the filters that the app has of its own.

    Raises `OptionError`: a retriever inside has no input for it.
    """
    conditions = []
    for key, value in where.items():
        conditions.append({"field": f"meta.{key}", "operator": "==", "value": value})
    if not isinstance(retriever, Pipeline):
        name = type(retriever).__name__
        return _filtered(constant, retriever, name, sockets_of(retriever).inputs, conditions)
    values = dict(constant)
    free = [socket for socket in pipeline_sockets(retriever).inputs if socket.free]
    for name in _sources(retriever):
        inputs = [socket for socket in free if socket.component == name]
        part = retriever.get_component(name)
        values[name] = _filtered(values.get(name, {}), part, name, inputs, conditions)
    return values


def _filtered(
    values: Values,
    component: object,
    name: str,
    inputs: Iterable[Socket],
    conditions: Sequence[Values],
) -> Values:
    if not any(socket.name == "filters" for socket in inputs):
        raise OptionError(
            f"a question has a filter (where), and {name} has no free input called filters"
        )
    filters = values.get("filters")
    for attribute in ("filters", "_filters"):
        filters = filters or getattr(component, attribute, None)
    if filters:
        conditions = [filters, *conditions]
    return {**values, "filters": {"operator": "AND", "conditions": list(conditions)}}


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


def _system(retriever: Component | Pipeline, ask: AskOptions) -> DeployedRetriever:
    """A retriever component, or a `Pipeline`, which is run to its end: leave out a generator that costs money.

    Sockets are ``"component.input"`` in a pipeline and ``"input"`` of a component; docs/guides/haystack.md has the
    options.
    """
    check_foreign(retriever)
    constant = dict(ask.get("inputs") or {})
    parts: list[object] = [retriever, ask.get("text_embedder"), constant]
    if isinstance(retriever, Pipeline):
        functions = _of_pipeline(retriever, ask, constant)
        parts += [retriever.get_component(name) for name in retriever.graph.nodes]
    elif is_component(retriever):
        functions = _of_component(retriever, ask, constant)
    else:
        raise DataError(
            f"expected a Haystack component or Pipeline, got {kind_of(retriever)}; a store is asked through its "
            "retriever"
        )

    def filtered(where: Mapping[str, object]) -> DeployedRetriever:
        return _system(retriever, {**ask, "inputs": with_filter(retriever, constant, where)})

    return DeployedRetriever(type(retriever).__name__, *functions, parts, filtered)


def _of_pipeline(
    pipeline: Pipeline, ask_options: AskOptions, constant: Values
) -> tuple[Ask, AsyncAsk]:
    if ask_options.get("text_embedder") is not None:
        raise OptionError("a pipeline embeds the question itself: connect the text embedder in it")
    inputs, outputs = pipeline_sockets(pipeline)
    queries = find_queries(inputs, ask_options.get("query_socket"))
    documents = find_documents(outputs, ask_options.get("documents_socket"))
    names: set[str] = set()
    for component, values in constant.items():
        names |= {f"{component}.{key}" for key in values}
    _check_inputs(inputs, queries, names)
    pipeline.warm_up()
    outer = {documents.component}

    def data(query: str) -> Values:
        whole = {component: dict(values) for component, values in constant.items()}
        for socket in queries:
            whole.setdefault(socket.component, {})[socket.name] = _question(socket, query)
        return whole

    def documents_in(result: Values) -> object:
        # Nothing, if a router led the question elsewhere.
        return result.get(documents.component, {}).get(documents.name, [])

    def ask(query: str) -> object:
        return documents_in(pipeline.run(data(query), include_outputs_from=outer))

    async def aask(query: str) -> object:
        return documents_in(await pipeline.run_async(data(query), include_outputs_from=outer))

    return ask, aask


def _of_component(
    retriever: Component, ask_options: AskOptions, constant: Values
) -> tuple[Ask, AsyncAsk]:
    text_embedder, query_socket = ask_options.get("text_embedder"), ask_options.get("query_socket")
    inputs, outputs = sockets_of(retriever)
    documents = find_documents(outputs, ask_options.get("documents_socket"))
    mandatory = [socket for socket in inputs if socket.mandatory]
    vectors = [socket for socket in mandatory if socket.holds(list[float])]
    name = type(retriever).__name__
    if text_embedder is not None and not vectors:
        raise OptionError(f"{name} takes no embedding: leave text_embedder out")
    if text_embedder is None and vectors:
        raise OptionError(
            f"{name} takes an embedding ({vectors[0]}): give the text_embedder that goes with its index, or the "
            "pipeline that holds both"
        )
    queries: list[Socket] = []
    takes_text = any(socket.holds(str) for socket in mandatory)
    if takes_text or query_socket is not None or not vectors:
        queries = find_queries(inputs, query_socket)
    _check_inputs(inputs, [*queries, *vectors[:1]], set(constant))
    embedder = None if text_embedder is None else _query_embedder(text_embedder)
    warm_up(retriever)

    async def answer(query: str, run: Callable[..., Awaitable[Outputs]]) -> object:
        values = {**constant, **{socket.name: _question(socket, query) for socket in queries}}
        if embedder is not None:
            text, vector = embedder
            embedded = await run(text_embedder, {text.name: query})
            values[vectors[0].name] = embedded[vector.name]
        return (await run(retriever, values))[documents.name]

    def ask(query: str) -> object:
        return finished(answer(query, at_once(run)))

    async def aask(query: str) -> object:
        return await answer(query, run_async)

    return ask, aask


def _query_embedder(component: Component) -> tuple[Socket, Socket]:
    if not is_component(component):
        raise DataError(
            f"text_embedder: expected a Haystack text embedder, got {type(component).__name__}"
        )
    inputs, outputs = sockets_of(component)
    vectors = [socket for socket in outputs if socket.holds(list[float])]
    if not vectors:
        raise DataError(
            f"text_embedder: {type(component).__name__} gives no single embedding; a document embedder embeds "
            "documents, the question needs the text embedder that goes with it"
        )
    text = find_queries(inputs, None)[0]
    warm_up(component)
    return text, vectors[0]


def _question(socket: Socket, query: str) -> str | list[str]:
    takes_list = socket.holds(list[str]) and not socket.holds(str)
    return [query] if takes_list else query


def _check_inputs(inputs: Sequence[Socket], queries: Sequence[Socket], constant: set[str]) -> None:
    """Raise `OptionError` unless every mandatory input has a value, and every given one is there."""
    names = {str(socket) for socket in inputs}
    unknown = sorted(constant - names)
    if unknown:
        raise OptionError(
            f"inputs: there is no {', '.join(unknown)}; expected some of {', '.join(sorted(names))}"
        )
    needed = {str(socket) for socket in inputs if socket.free and socket.mandatory}
    missing = sorted(needed - constant - {str(socket) for socket in queries})
    if missing:
        raise OptionError(
            f"nothing is given for the mandatory {', '.join(missing)}: say what, as inputs={{...}}, "
            "or name it among query_socket if it takes the question too"
        )


_hooks: RetrieverHooks[DeployedRetriever] = RetrieverHooks(
    lambda system: system, hit_of, Document, "Haystack documents"
)


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


def _asked(
    retriever: Component | Pipeline, options: HaystackRunOptions
) -> tuple[DeployedRetriever, Values]:
    """The retriever, asked by its options, and the other options."""
    others: Values = dict(options)
    ask: Values = {name: others.pop(name, None) for name in AskOptions.__annotations__}
    return _system(retriever, cast(AskOptions, ask)), others


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
    system, run = _asked(retriever, options)
    return _hooks.run_retriever(system, benchmark, **run)


async def arun_retriever(
    retriever: Component | Pipeline,
    benchmark: Benchmark | str,
    *,
    concurrency: int = 8,
    **options: Unpack[HaystackRunOptions],
) -> Run:
    """`run_retriever` by the asynchronous method, with at most `concurrency` questions at a time."""
    system, run = _asked(retriever, options)
    return await _hooks.arun_retriever(system, benchmark, concurrency=concurrency, **run)


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
    system, run = _asked(retriever, options)
    return _hooks.evaluate_retriever(system, benchmark, **run)


async def aevaluate_retriever(
    retriever: Component | Pipeline,
    benchmark: Benchmark | str,
    *,
    concurrency: int = 8,
    **options: Unpack[HaystackScoreOptions],
) -> Report:
    """`evaluate_retriever` by the asynchronous method, with at most `concurrency` questions at a time."""
    system, run = _asked(retriever, options)
    return await _hooks.aevaluate_retriever(system, benchmark, concurrency=concurrency, **run)
