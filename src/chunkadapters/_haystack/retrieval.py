"""Scores for any Haystack retriever component or pipeline, as it is deployed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import UnionType
from typing import Any, Union, cast, get_args, get_origin

from haystack import Document, Pipeline

from chunkadapters.models import secrets_within
from chunkadapters.places import DERIVED, Hit
from chunkadapters.retrieval import Piece, RetrieverHooks, System, names, settings_mark, stated_spans
from chunkcore.errors import DataError, OptionError

__all__ = [
    "Socket",
    "Sockets",
    "aevaluate_retriever",
    "arun_retriever",
    "component_sockets",
    "evaluate_retriever",
    "find_documents",
    "find_queries",
    "hit_of",
    "is_component",
    "piece_of",
    "pipeline_sockets",
    "run_async",
    "run_retriever",
    "warm_up",
]

# Where Haystack's converters and fetchers, and users, write down what a document is called.
_NAMING_KEYS = ("file_path", "file_name", "name", "source", "path", "url", "title", "id")


def piece_of(document: Any) -> Piece:
    """What a document says of itself. Raises `DataError` where it is none."""
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


def hit_of(document: Document) -> Hit:
    """A document with the one that its place is in: the root of a chain of splitters, or its source."""
    piece, meta = piece_of(document), document.meta
    source = meta.get("root_source_id") or meta.get("source_id")
    return Hit(source if isinstance(source, str) else "", piece.spans, piece.text, piece.derived)


def is_component(candidate: Any) -> bool:
    """Whether it is an object of a class that Haystack's ``component`` decorated."""
    return hasattr(candidate, "__haystack_input__") and hasattr(candidate, "__haystack_output__")


def warm_up(component: Any) -> None:
    """Warm it up, where it has to be."""
    if hasattr(component, "warm_up"):
        component.warm_up()


async def run_async(component: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Its outputs: by its own asynchronous method, or from a thread where it has none."""
    if getattr(component, "__haystack_supports_async__", False):
        return cast("Mapping[str, Any]", await component.run_async(**values))
    return cast("Mapping[str, Any]", await asyncio.to_thread(component.run, **values))


@dataclass(frozen=True, slots=True)
class Socket:
    """An input or an output; of a component on its own, `component` is empty."""

    component: str
    name: str
    type: Any
    mandatory: bool = False

    def __str__(self) -> str:
        return f"{self.component}.{self.name}" if self.component else self.name

    def holds(self, kind: Any) -> bool:
        """Whether its type is `kind`, or a union with it."""
        union = get_origin(self.type) in (Union, UnionType)
        return kind in (get_args(self.type) if union else (self.type,))


@dataclass(frozen=True, slots=True)
class Sockets:
    """The sockets of a component or a pipeline.

    Attributes:
        inputs: those that nothing inside is connected to.
        outputs: those that nothing inside is connected to.
        inner_inputs: every input, the connected ones too.
        inner_outputs: every output, the connected ones too.
    """

    inputs: Sequence[Socket]
    outputs: Sequence[Socket]
    inner_inputs: Sequence[Socket]
    inner_outputs: Sequence[Socket]


def pipeline_sockets(pipeline: Pipeline) -> Sockets:
    """The sockets of a whole pipeline."""
    return Sockets(
        inputs=_flat(pipeline.inputs()),
        outputs=_flat(pipeline.outputs()),
        inner_inputs=_flat(pipeline.inputs(include_components_with_connected_inputs=True)),
        inner_outputs=_flat(pipeline.outputs(include_components_with_connected_outputs=True)),
    )


def _flat(described: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[Socket]:
    return [
        Socket(component, name, told["type"], bool(told.get("is_mandatory", False)))
        for component, sockets in described.items()
        for name, told in sockets.items()
    ]


def component_sockets(component: Any) -> Sockets:
    """The sockets of one component."""
    # Public sockets exist only in a pipeline, and a component can be in one only.
    inputs = [
        Socket("", name, socket.type, socket.is_mandatory)
        for name, socket in component.__haystack_input__._sockets_dict.items()
    ]
    outputs = [Socket("", name, socket.type) for name, socket in component.__haystack_output__._sockets_dict.items()]
    return Sockets(inputs, outputs, inputs, outputs)


def find_queries(sockets: Sockets, named: str | Sequence[str] | None) -> list[Socket]:
    """The inputs that take the question: the named ones, else the only mandatory string.

    Raises:
        OptionError: no such input, none that could be meant, or several.
    """
    if named is not None:
        wanted = [named] if isinstance(named, str) else named
        if not isinstance(wanted, list | tuple) or not all(isinstance(each, str) for each in wanted) or not wanted:
            raise OptionError(f"query_socket is an input's name or a list of names, got {named!r}")
        return [_named(each, sockets.inner_inputs, "query_socket", str) for each in wanted]
    texts = [socket for socket in sockets.inputs if socket.holds(str)]
    mandatory = [socket for socket in texts if socket.mandatory]
    if len(mandatory) == 1:
        return mandatory
    if mandatory:
        raise OptionError(
            f"several inputs take a string: {_listed(mandatory)}; say which take the question, "
            f"as query_socket={[str(socket) for socket in mandatory]!r} or one of them, "
            "and what the others take as inputs={...}"
        )
    raise OptionError(
        "no mandatory input takes a string; "
        + (f"name one of {_listed(texts)} as query_socket" if texts else "a retriever needs one for the question")
    )


def find_documents(sockets: Sockets, named: str | None) -> Socket:
    """The output that gives the documents: the named one, else the only one of documents.

    Outputs that something inside takes are looked at where no other gives documents: the retriever of a
    pipeline that ends in a generator.

    Raises:
        OptionError: no such output, none that gives documents, or several.
    """
    if named is not None:
        return _named(named, sockets.inner_outputs, "documents_socket", list[Document])
    for candidates in (sockets.outputs, sockets.inner_outputs):
        found = [socket for socket in candidates if socket.holds(list[Document])]
        if len(found) == 1:
            return found[0]
        if found:
            raise OptionError(
                f"several outputs give documents: {_listed(found)}; "
                f'say which counts, as documents_socket="{found[0]}" for instance'
            )
    raise OptionError(
        f"no output gives a list of documents: expected one, got {_listed(sockets.inner_outputs) or 'no output at all'}"
    )


def _named(name: str, candidates: Sequence[Socket], option: str, kind: Any) -> Socket:
    for socket in candidates:
        if str(socket) == name:
            return socket
    fitting = [socket for socket in candidates if socket.holds(kind)] or candidates
    raise OptionError(f"{option}: there is no {name!r}; expected one of {_listed(fitting)}")


def _listed(sockets: Iterable[Socket]) -> str:
    return ", ".join(map(str, sockets))


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
        return (await run_async(self.component, values))[self.documents.name]

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
        return (await run_async(self.component, {self.text.name: query}))[self.vector.name]


def _question(socket: Socket, query: str) -> Any:
    return [query] if socket.holds(list[str]) and not socket.holds(str) else query


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
    warm_up(retriever)
    return _ComponentSystem(retriever, queries, documents, given, embedding, embedder)


def _embedder(component: Any) -> _Embedder:
    if not is_component(component):
        raise DataError(f"text_embedder: expected a Haystack text embedder, got {type(component).__name__}")
    sockets = component_sockets(component)
    vectors = [socket for socket in sockets.outputs if socket.holds(list[float])]
    if not vectors:
        raise DataError(
            f"text_embedder: {type(component).__name__} gives no single embedding; a document embedder embeds "
            "documents, the question needs the text embedder that goes with it"
        )
    text = find_queries(sockets, None)[0]
    warm_up(component)
    return _Embedder(component, text, vectors[0])


def _inputs(inputs: Any, *, nested: bool) -> dict[str, Any]:
    shaped = isinstance(inputs, Mapping) and not (
        nested and any(not isinstance(each, Mapping) for each in inputs.values())
    )
    if inputs is None or shaped:
        return dict(inputs or {})
    example = '{"retriever": {"top_k": 20}}' if nested else '{"top_k": 20}'
    raise OptionError(f"inputs is like {example}, got {inputs!r}")


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


def _system(
    retriever: Any,
    *,
    text_embedder: Any = None,
    query_socket: str | Sequence[str] | None = None,
    documents_socket: str | None = None,
    inputs: Mapping[str, Any] | None = None,
) -> System:
    """A retriever component, or a `Pipeline`, which is run to its end: leave out a generator that costs money.

    Nothing in it is changed. An answer is located by its metadata where they hold (``source_id``, ``file_path``
    or another name of the document, with ``split_idx_start``), and by its text otherwise.

    Args:
        retriever: the component or the pipeline.
        text_embedder: a text embedder component, for a retriever component that takes an embedding.
        query_socket: the input that takes the question, ``"component.input"`` in a pipeline and ``"input"`` of
            a component; several where the question goes to several. By default the only mandatory string.
        documents_socket: the output whose documents count, likewise; it may be connected to something. By
            default the only output of documents.
        inputs: everything else to run with, such as ``{"retriever": {"top_k": 20}}`` for a pipeline and
            ``{"top_k": 20}`` for a component.

    Raises:
        OptionError: the sockets cannot be told (the message names the candidates), or an input is missing.
        DataError: `retriever` is no component or pipeline.
    """
    given = _inputs(inputs, nested=isinstance(retriever, Pipeline))
    asked: _PipelineSystem | _ComponentSystem
    if isinstance(retriever, Pipeline):
        if text_embedder is not None:
            raise OptionError("a pipeline embeds the question itself: connect the text embedder in it")
        sockets = pipeline_sockets(retriever)
        queries = find_queries(sockets, query_socket)
        documents = find_documents(sockets, documents_socket)
        named = {f"{component}.{key}" for component, values in given.items() for key in values}
        _check_inputs(sockets, queries, named)
        retriever.warm_up()
        asked = _PipelineSystem(retriever, queries, documents, given)
    elif is_component(retriever):
        asked = _component_system(retriever, text_embedder, query_socket, documents_socket, given)
    else:
        hint = "; a store is asked through its retriever" if hasattr(retriever, "filter_documents") else ""
        raise DataError(f"expected a Haystack component or Pipeline, got {type(retriever).__name__}{hint}")
    parts = _parts(retriever, text_embedder, query_socket, documents_socket, given)
    return System(
        name=type(retriever).__name__,
        ask=asked.ask,
        aask=asked.ask_async,
        settings=partial(settings_mark, parts, is_component),
        secrets=partial(secrets_within, retriever, text_embedder),
    )


def _parts(retriever: Any, *how: Any) -> list[Any]:
    """What answers depend on: the components, how they are connected, and how they are asked."""
    if not isinstance(retriever, Pipeline):
        return [retriever, *how]
    components = [[name, retriever.get_component(name)] for name in sorted(retriever.graph.nodes)]
    return [components, sorted(map(list, retriever.graph.edges(keys=True))), *how]


def _pieces(answer: Any) -> list[Piece]:
    if not isinstance(answer, list | tuple):
        raise DataError(f"expected a list of Haystack documents, got a {type(answer).__name__}")
    return [piece_of(each) for each in answer]


_hooks: RetrieverHooks[Any, Document] = RetrieverHooks(_system, _pieces)
run_retriever = _hooks.run_retriever
arun_retriever = _hooks.arun_retriever
evaluate_retriever = _hooks.evaluate_retriever
aevaluate_retriever = _hooks.aevaluate_retriever
