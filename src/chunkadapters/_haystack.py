"""Haystack's components as models and as retrievers: what `chunkadapters.haystack` and the components share.

The components are in Haystack's own namespace, `haystack_integrations`, because `Pipeline.loads` trusts only that. They
import this module, and `chunkadapters.haystack` imports them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from types import UnionType
from typing import TYPE_CHECKING, Any, NamedTuple, Union, cast, get_args, get_origin

from haystack import Document, Pipeline, default_from_dict, default_to_dict, logging
from haystack.core.serialization import component_from_dict, component_to_dict, import_class_by_name
from haystack.dataclasses import ChatMessage
from typing_extensions import Self

from chunkadapters.models import BridgedEmbedder, BridgedLLM, at_once, finished, titled
from chunkadapters.places import SPANS, PlaceKeys, is_derived, with_page_marks
from chunkadapters.scores import (
    DEPTHS,
    DeployedRetriever,
    RetrieverHooks,
    RunSettings,
    Scoring,
    check_foreign,
)
from chunkcore.concurrency import Progress
from chunkcore.errors import DataError, ModelError, OptionError, kind_of
from chunkcore.locating import Hit, names_of, score_of
from chunkcore.models.llm import Message, Reply
from chunkcore.models.llm.endpoint import reply_of
from chunkcore.options import named_options
from chunkcore.run import Run
from chunkcore.text import Document as CoreDocument

if TYPE_CHECKING:
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark
    from chunkcore.evaluation.measures import Depth, Measure
    from chunkcore.evaluation.results import Report

logger = logging.getLogger(__name__)

# ---- Documents and places

# A chunk's place in the document it was cut from, and in the document at the root of a chain of splitters.
KEYS = PlaceKeys("split_idx_start", "split_idx_end", SPANS)
ROOT = PlaceKeys("root_idx_start", "root_idx_end", "root_spans")
# Where Haystack's converters and fetchers, and users, write a document's name.
_NAMING_KEYS = ("file_path", "file_name", "name", "source", "path", "url", "title", "id")


def hit_of(document: Any) -> Hit:
    """A document as a hit. Raises `DataError` for anything else."""
    if not isinstance(document, Document):
        raise DataError(
            f"expected Haystack documents, got a {type(document).__name__} among the answers"
        )
    meta, text = document.meta, document.content or ""
    source = meta.get("root_source_id") or meta.get("source_id")
    keys = ROOT if isinstance(meta.get("root_source_id"), str) else KEYS
    return Hit(
        text=text,
        score=score_of(document.score),
        names=names_of(
            meta.get("root_source_id"),
            meta.get("source_id"),
            document.id,
            *(meta.get(key) for key in _NAMING_KEYS),
        ),
        stated=keys.stated(meta, text),
        derived=is_derived(meta),
        document=source if isinstance(source, str) else "",
        metadata=meta,
        id=document.id,
    )


def from_document(document: CoreDocument) -> Document:
    """A chunkcore document, as from `join_pages` or `load_documents`, as Haystack's; its chunks say their pages.

    The metadata have ``page_marks``, which chunks of `ChunkcoreDocumentSplitter` do not inherit.
    """
    return Document(id=document.id, content=document.text, meta=with_page_marks(document))


def check_documents(component: Any, documents: object) -> None:
    """Raise `TypeError` for anything but a list of `Document`, as Haystack's own components do."""
    expected = f"{type(component).__name__} expects a list of Documents as input"
    if not isinstance(documents, list):
        raise TypeError(f"{expected}, got {type(documents).__name__}")
    for place, document in enumerate(documents):
        if not isinstance(document, Document):
            how = "; from_document makes one" if isinstance(document, CoreDocument) else ""
            raise TypeError(f"{expected}, got {type(document)} at place {place}{how}")


def has_text(document: Document) -> bool:
    """Whether a document has content; if not, a warning says that it is skipped."""
    if document.content:
        return True
    logger.warning(
        "Document ID {doc_id} has an empty content. Skipping this document.", doc_id=document.id
    )
    return False


class Serialized:
    """A component that Haystack can write as YAML, and whose constructor says which options there are.

    Its `run_async` is `run` in a thread.
    """

    run_async: Callable[..., Coroutine[Any, Any, dict[str, Any]]]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__init__ = named_options()(cls.__init__)  # type: ignore[method-assign]
        run: Callable[..., dict[str, Any]] | None = vars(cls).get("run")
        if run is not None and "run_async" not in vars(cls):

            @wraps(run)  # Haystack compares signatures and output types
            async def run_async(*values: Any, **more: Any) -> dict[str, Any]:
                return await asyncio.to_thread(run, *values, **more)

            cls.run_async = run_async

    def _arguments(self) -> dict[str, Any]:
        """The constructor's arguments as plain values or as objects with a `to_dict`: by default its attributes."""
        names = list(signature(type(self).__init__).parameters)[1:]
        return {name: getattr(self, name) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """The component as plain values. Raises `OptionError`: an argument has no name to be built from again."""
        return default_to_dict(self, **self._arguments())

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The component that `to_dict` described. Raises `DeserializationError` for modules that Haystack distrusts."""
        return default_from_dict(cls, data)


# ---- Components and their sockets


def _is_component(candidate: Any) -> bool:
    """Whether it is an object of a class that Haystack's ``component`` decorated."""
    return hasattr(candidate, "__haystack_input__") and hasattr(candidate, "__haystack_output__")


def warm_up(component: Any) -> None:
    """Load what a component loads, if it loads anything."""
    if hasattr(component, "warm_up"):
        component.warm_up()


def _run(component: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", component.run(**values))


async def _run_async(component: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
    if getattr(component, "__haystack_supports_async__", False):
        return cast("Mapping[str, Any]", await component.run_async(**values))
    return await asyncio.to_thread(_run, component, values)


@dataclass(frozen=True, slots=True)
class _Socket:
    """An input or an output; `component` is "" for a component on its own, `free` false if it is connected inside."""

    component: str
    name: str
    type: Any
    mandatory: bool = False
    free: bool = True

    def __str__(self) -> str:
        return f"{self.component}.{self.name}" if self.component else self.name

    def holds(self, kind: Any) -> bool:
        """Whether its type is `kind`, or a union with it. `typing.List` is `list`."""
        types = get_args(self.type) if get_origin(self.type) in (Union, UnionType) else (self.type,)
        shape = get_origin(kind), get_args(kind)
        return any(
            item == kind or (get_args(item) and (get_origin(item), get_args(item)) == shape)
            for item in types
        )


class _Sockets(NamedTuple):
    inputs: Sequence[_Socket]
    outputs: Sequence[_Socket]


def _sockets(component: Any) -> _Sockets:
    """The sockets of a component; none of anything else."""
    if not _is_component(component):
        return _Sockets((), ())
    # Haystack has public sockets only for components in a pipeline, and a component can be in only one.
    inputs, outputs = (
        component.__haystack_input__._sockets_dict,
        component.__haystack_output__._sockets_dict,
    )
    return _Sockets(
        [_Socket("", name, socket.type, socket.is_mandatory) for name, socket in inputs.items()],
        [_Socket("", name, socket.type) for name, socket in outputs.items()],
    )


def _pipeline_sockets(pipeline: Pipeline) -> _Sockets:
    def flat(
        described: Mapping[str, Mapping[str, Any]], free: Mapping[str, Mapping[str, Any]]
    ) -> list[_Socket]:
        return [
            _Socket(
                component,
                name,
                socket["type"],
                socket.get("is_mandatory", False),
                name in free.get(component, {}),
            )
            for component, sockets in described.items()
            for name, socket in sockets.items()
        ]

    return _Sockets(
        flat(pipeline.inputs(include_components_with_connected_inputs=True), pipeline.inputs()),
        flat(pipeline.outputs(include_components_with_connected_outputs=True), pipeline.outputs()),
    )


def _find_queries(
    inputs: Sequence[_Socket], query_socket: str | Sequence[str] | None
) -> list[_Socket]:
    """The inputs that take the question: the named ones, else the only mandatory string. Raises `OptionError`."""
    if query_socket is not None:
        names = [query_socket] if isinstance(query_socket, str) else query_socket
        if (
            not isinstance(names, list | tuple)
            or not all(isinstance(name, str) for name in names)
            or not names
        ):
            raise OptionError(
                f"query_socket is an input's name or a list of names, got {query_socket!r}"
            )
        return [_named(name, inputs, "query_socket") for name in names]
    mandatory = [
        socket for socket in inputs if socket.free and socket.mandatory and socket.holds(str)
    ]
    if len(mandatory) > 1:
        raise OptionError(
            f"several inputs take a string: {_listed(mandatory)}; say which take the question, as query_socket="
            f"{[str(socket) for socket in mandatory]!r} or one of them, and what the others take as inputs={{...}}"
        )
    if not mandatory:
        raise OptionError(
            f"no mandatory input takes a string: name one of {_listed(inputs)} as query_socket"
        )
    return mandatory


def _find_documents(outputs: Sequence[_Socket], documents_socket: str | None) -> _Socket:
    """The output of documents: the named one, else the only one.

    If no output gives documents, connected ones are searched: the retriever of a pipeline that ends in a generator.
    Raises `OptionError`: no such output, no output of documents, or several.
    """
    if documents_socket is not None:
        return _named(documents_socket, outputs, "documents_socket")
    matches = [socket for socket in outputs if socket.holds(list[Document])]
    matches = [socket for socket in matches if socket.free] or matches
    if not matches:
        raise OptionError(
            f"no output gives a list of documents: name one of {_listed(outputs)} as documents_socket"
        )
    if len(matches) > 1:
        raise OptionError(
            f"several outputs give documents: {_listed(matches)}; "
            f'say which counts, as documents_socket="{matches[0]}" for instance'
        )
    return matches[0]


def _named(name: str, candidates: Sequence[_Socket], option: str) -> _Socket:
    for socket in candidates:
        if str(socket) == name:
            return socket
    raise OptionError(f"{option}: there is no {name!r}; expected one of {_listed(candidates)}")


def _listed(sockets: Iterable[_Socket]) -> str:
    return ", ".join(map(str, sockets)) or "none"


# ---- Components as models

_FROM = {
    "system": ChatMessage.from_system,
    "user": ChatMessage.from_user,
    "assistant": ChatMessage.from_assistant,
}


def as_embedder(
    component: Any,
    text_embedder: Any = None,
    *,
    name: str | None = None,
    fingerprint: str | None = None,
    max_tokens: int | None = None,
) -> BridgedEmbedder:
    """Any Haystack document or text embedder as an `Embedder`, for chunkers, indexes, caches and comparisons.

    The options of `ChunkcoreDocumentSplitter` take such a component as it is; elsewhere, wrap it:
    ``CachedEmbedder(as_embedder(OpenAIDocumentEmbedder(), OpenAITextEmbedder()))``.

    Args:
        component: a document embedder, which gets all texts at once and batches them; or a text embedder, which gets
            one at a time.
        text_embedder: embeds questions; by default `component` does.
        name, fingerprint, max_tokens: see `BridgedEmbedder`.

    Raises `OptionError`: no such component, or a fingerprint is required, because its settings name no model.

    >>> from haystack.components.embedders import MockDocumentEmbedder
    >>> embedder = as_embedder(MockDocumentEmbedder(dimension=8))
    >>> embedder.name, embedder.embed_documents(["tea", "coffee"]).shape
    ('haystack:MockDocumentEmbedder:mock-model', (2, 8))
    """
    if not (_embeds_documents(component) or _embeds_text(component)):
        raise OptionError(
            f"expected a Haystack document or text embedder, got {type(component).__name__}"
        )
    if text_embedder is not None and not _embeds_text(text_embedder):
        raise OptionError(
            f"text_embedder: expected a Haystack text embedder, got {type(text_embedder).__name__}"
        )
    return _Embedder(component, text_embedder, name, fingerprint, max_tokens)


def as_llm(
    generator: Any, *, name: str | None = None, fingerprint: str | None = None, concurrency: int = 1
) -> BridgedLLM:
    """Any Haystack chat generator as an `LLM`.

    `OpenAIChatGenerator` and its subclasses, which most services' generators are, get a JSON schema as
    ``response_format``; another generator is asked in words. Token counts are the reply's ``usage``. Options: see
    `BridgedLLM`.

    Raises `OptionError`: no chat generator, a fingerprint is required, or concurrency is under 1.

    >>> from haystack.components.generators.chat import MockChatGenerator
    >>> as_llm(MockChatGenerator("Yes.")).complete([{"role": "user", "content": "Tea?"}]).text
    'Yes.'
    """
    if not _generates(generator):
        raise OptionError(f"expected a Haystack chat generator, got {type(generator).__name__}")
    return _LLM(generator, name, fingerprint, concurrency)


def as_model(value: Any) -> Any:
    """An option's value: Haystack's models as chunkcore's, anything else as it is."""
    if not _is_component(value):
        return value
    return as_llm(value) if _generates(value) else as_embedder(value)


def written(value: Any, plain: Any) -> Any:
    """A model as YAML holds it: a bridged component as it describes itself, anything else as `plain`."""
    if not isinstance(value, _Embedder | _LLM):
        return plain
    if isinstance(value, _Embedder) and value.text_embedder is not None:
        raise OptionError(
            f"{value.name!r} is of two components, which a configuration cannot hold: pass one of them"
        )
    return component_to_dict(value.model, value.name)


def restored(value: Any) -> Any:
    """The component that `written` described; anything else as it is. Raises `DeserializationError`."""
    if not (
        isinstance(value, dict)
        and isinstance(value.get("type"), str)
        and "init_parameters" in value
    ):
        return value
    return component_from_dict(import_class_by_name(value["type"]), value, "model")


def _has(sockets: Sequence[_Socket], name: str) -> bool:
    return any(socket.name == name for socket in sockets)


def _embeds_documents(component: Any) -> bool:
    inputs, outputs = _sockets(component)
    return [socket.name for socket in inputs if socket.mandatory] == ["documents"] and _has(
        outputs, "documents"
    )


def _embeds_text(component: Any) -> bool:
    return any(
        socket.name == "embedding" and socket.holds(list[float])
        for socket in _sockets(component).outputs
    )


def _generates(component: Any) -> bool:
    inputs, outputs = _sockets(component)
    return _has(inputs, "messages") and _has(outputs, "replies")


def takes_and_gives_documents(component: Any) -> bool:
    """Whether it is a component with an input and an output named ``documents``."""
    return all(_has(side, "documents") for side in _sockets(component))


class _Embedder(BridgedEmbedder):
    framework = "haystack"

    def __init__(
        self,
        component: Any,
        text_embedder: Any,
        name: str | None,
        fingerprint: str | None,
        max_tokens: int | None,
    ) -> None:
        super().__init__(component, name, fingerprint, max_tokens)
        self._whole_batches = _embeds_documents(component)
        self.text_embedder = text_embedder
        self.symmetric = text_embedder is None

    def warm_up(self) -> None:
        for component in (self.model, self.text_embedder):
            warm_up(component)

    def _documents(self, texts: list[str]) -> Any:
        warm_up(self.model)
        if not self._whole_batches:
            return [self.model.run(text=text)["embedding"] for text in texts]
        numbered = [Document(id=str(place), content=text) for place, text in enumerate(texts)]
        # Embedders may return documents in another order.
        vectors = {
            document.id: document.embedding
            for document in self.model.run(documents=numbered)["documents"]
        }
        if len(vectors) != len(texts):
            raise ModelError(
                f"the model {self.name!r} was given {len(texts)} texts and answered with {len(vectors)}"
            )
        return [vectors.get(str(place)) for place in range(len(texts))]

    def _queries(self, texts: list[str]) -> Any:
        if self.text_embedder is None:
            return self._documents(texts)
        warm_up(self.text_embedder)
        return [self.text_embedder.run(text=text)["embedding"] for text in texts]


class _LLM(BridgedLLM):
    framework = "haystack"

    def warm_up(self) -> None:
        warm_up(self.model)

    def _ask(self, messages: Sequence[Message], schema: Mapping[str, Any] | None) -> Reply:
        warm_up(self.model)
        options: dict[str, Any] = {}
        if schema is not None:
            # By name: the class itself takes a second to import.
            if not any(cls.__name__ == "OpenAIChatGenerator" for cls in type(self.model).__mro__):
                raise NotImplementedError
            named = {"name": "answer", "strict": True, "schema": titled(schema)}
            options["generation_kwargs"] = {
                "response_format": {"type": "json_schema", "json_schema": named}
            }
        turns = [_FROM[turn["role"]](turn["content"]) for turn in messages]
        reply = self.model.run(messages=turns, **options)["replies"][0]
        return reply_of(reply.text or "", reply.meta)


# ---- Components and pipelines as retrievers


def _system(
    retriever: Any,
    *,
    text_embedder: Any = None,
    query_socket: str | Sequence[str] | None = None,
    documents_socket: str | None = None,
    inputs: Mapping[str, Any] | None = None,
) -> DeployedRetriever:
    """A retriever component, or a `Pipeline`, which is run to its end: leave out a generator that costs money.

    Sockets are ``"component.input"`` in a pipeline and ``"input"`` of a component; docs/guides/haystack.md has the
    options.
    """
    constant = _inputs(inputs, nested=isinstance(retriever, Pipeline))
    if isinstance(retriever, Pipeline):
        if text_embedder is not None:
            raise OptionError(
                "a pipeline embeds the question itself: connect the text embedder in it"
            )
        ask, aask = _of_pipeline(retriever, query_socket, documents_socket, constant)
    elif _is_component(retriever):
        ask, aask = _of_component(
            retriever, text_embedder, query_socket, documents_socket, constant
        )
    else:
        hint = (
            "; a store is asked through its retriever"
            if hasattr(retriever, "filter_documents")
            else ""
        )
        raise DataError(
            f"expected a Haystack component or Pipeline, got {kind_of(retriever)}{hint}"
        )
    parts = [retriever, text_embedder, constant]
    if isinstance(retriever, Pipeline):
        parts += [retriever.get_component(name) for name in retriever.graph.nodes]

    def filtered(where: Mapping[str, Any]) -> DeployedRetriever:
        return _system(
            retriever,
            text_embedder=text_embedder,
            query_socket=query_socket,
            documents_socket=documents_socket,
            inputs=_with_filters(retriever, constant, where),
        )

    return DeployedRetriever(type(retriever).__name__, ask, aask, parts, filtered)


def _with_filters(
    retriever: Any, constant: Mapping[str, Any], where: Mapping[str, Any]
) -> dict[str, Any]:
    """The inputs with the filter of one question. Raises `OptionError`: no input takes filters."""
    filters = where
    if "operator" not in where:
        conditions = []
        for key, value in where.items():
            operator = "in" if isinstance(value, list) else "=="
            conditions.append({"field": f"meta.{key}", "operator": operator, "value": value})
        filters = {"operator": "AND", "conditions": conditions}
    is_pipeline = isinstance(retriever, Pipeline)
    inputs = _pipeline_sockets(retriever).inputs if is_pipeline else _sockets(retriever).inputs
    sockets = [socket for socket in inputs if socket.name == "filters" and socket.free]
    if not sockets:
        raise OptionError(
            f"a question has a filter (where), and {type(retriever).__name__} has no input called filters"
        )
    if not is_pipeline:
        return {**constant, "filters": filters}
    values = {component: dict(given) for component, given in constant.items()}
    for socket in sockets:
        values.setdefault(socket.component, {})["filters"] = filters
    return values


RetrieverRun = tuple[Callable[[str], Any], Callable[[str], Awaitable[Any]]]


def _of_pipeline(
    pipeline: Pipeline,
    query_socket: str | Sequence[str] | None,
    documents_socket: str | None,
    constant: dict[str, Any],
) -> RetrieverRun:
    inputs, outputs = _pipeline_sockets(pipeline)
    queries, documents = (
        _find_queries(inputs, query_socket),
        _find_documents(outputs, documents_socket),
    )
    _check_inputs(
        inputs,
        queries,
        {f"{component}.{key}" for component, values in constant.items() for key in values},
    )
    pipeline.warm_up()
    outer = {documents.component}

    def data(query: str) -> dict[str, dict[str, Any]]:
        whole = {component: dict(values) for component, values in constant.items()}
        for socket in queries:
            whole.setdefault(socket.component, {})[socket.name] = _question(socket, query)
        return whole

    def documents_in(result: Mapping[str, Any]) -> Any:
        # Nothing, if a router led the question elsewhere.
        return result.get(documents.component, {}).get(documents.name, [])

    async def aask(query: str) -> Any:
        return documents_in(await pipeline.run_async(data(query), include_outputs_from=outer))

    return lambda query: documents_in(pipeline.run(data(query), include_outputs_from=outer)), aask


def _of_component(
    retriever: Any,
    text_embedder: Any,
    query_socket: str | Sequence[str] | None,
    documents_socket: str | None,
    constant: dict[str, Any],
) -> RetrieverRun:
    inputs, outputs = _sockets(retriever)
    documents = _find_documents(outputs, documents_socket)
    vectors = [socket for socket in inputs if socket.mandatory and socket.holds(list[float])]
    if not vectors and text_embedder is not None:
        raise OptionError(f"{type(retriever).__name__} takes no embedding: leave text_embedder out")
    if vectors and text_embedder is None:
        raise OptionError(
            f"{type(retriever).__name__} takes an embedding ({vectors[0]}): give the text_embedder that goes with "
            "its index, or the pipeline that holds both"
        )
    texts = any(socket.mandatory and socket.holds(str) for socket in inputs)
    queries = (
        []
        if vectors and not texts and query_socket is None
        else _find_queries(inputs, query_socket)
    )
    _check_inputs(inputs, [*queries, *vectors[:1]], set(constant))
    embedder = None if text_embedder is None else _query_embedder(text_embedder)
    warm_up(retriever)

    async def answer(
        query: str, run: Callable[[Any, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
    ) -> Any:
        values = {**constant, **{socket.name: _question(socket, query) for socket in queries}}
        if embedder is not None:
            text, vector = embedder
            values[vectors[0].name] = (await run(text_embedder, {text.name: query}))[vector.name]
        return (await run(retriever, values))[documents.name]

    return lambda query: finished(answer(query, at_once(_run))), lambda query: answer(
        query, _run_async
    )


def _query_embedder(component: Any) -> tuple[_Socket, _Socket]:
    if not _is_component(component):
        raise DataError(
            f"text_embedder: expected a Haystack text embedder, got {type(component).__name__}"
        )
    inputs, outputs = _sockets(component)
    vectors = [socket for socket in outputs if socket.holds(list[float])]
    if not vectors:
        raise DataError(
            f"text_embedder: {type(component).__name__} gives no single embedding; a document embedder embeds "
            "documents, the question needs the text embedder that goes with it"
        )
    text = _find_queries(inputs, None)[0]
    warm_up(component)
    return text, vectors[0]


def _question(socket: _Socket, query: str) -> Any:
    return [query] if socket.holds(list[str]) and not socket.holds(str) else query


def _inputs(inputs: Any, *, nested: bool) -> dict[str, Any]:
    shaped = isinstance(inputs, Mapping) and not (
        nested and any(not isinstance(value, Mapping) for value in inputs.values())
    )
    if inputs is None or shaped:
        return dict(inputs or {})
    example = '{"retriever": {"top_k": 20}}' if nested else '{"top_k": 20}'
    raise OptionError(f"inputs is like {example}, got {inputs!r}")


def _check_inputs(
    inputs: Sequence[_Socket], queries: Sequence[_Socket], constant: set[str]
) -> None:
    """Raise `OptionError` unless every mandatory input has a value, and every given one is there."""
    names = {str(socket) for socket in inputs}
    if unknown := sorted(constant - names):
        raise OptionError(
            f"inputs: there is no {', '.join(unknown)}; expected some of {', '.join(sorted(names))}"
        )
    covered = constant | {str(socket) for socket in queries}
    missing = [
        str(socket)
        for socket in inputs
        if socket.free and socket.mandatory and str(socket) not in covered
    ]
    if missing:
        raise OptionError(
            f"nothing is given for the mandatory {', '.join(missing)}: say what, as inputs={{...}}, "
            "or name it among query_socket if it takes the question too"
        )


_hooks: RetrieverHooks[Any, Document] = RetrieverHooks(_system, hit_of, "Haystack documents")


@dataclass(frozen=True, kw_only=True)
class _Asking:
    """How a component or a pipeline is asked; see `run_retriever`."""

    text_embedder: Any
    query_socket: str | Sequence[str] | None
    documents_socket: str | None
    inputs: Mapping[str, Any] | None

    def system(self, retriever: Any) -> DeployedRetriever:
        check_foreign(retriever)
        return _system(
            retriever,
            text_embedder=self.text_embedder,
            query_socket=self.query_socket,
            documents_socket=self.documents_socket,
            inputs=self.inputs,
        )


def run_retriever(
    retriever: Any,
    benchmark: Benchmark | str,
    *,
    text_embedder: Any = None,
    query_socket: str | Sequence[str] | None = None,
    documents_socket: str | None = None,
    inputs: Mapping[str, Any] | None = None,
    pool: Iterable[Document] | None = None,
    name: str | None = None,
    retries: int = 2,
    retry_wait: float = 0.5,
    progress: Progress | None = None,
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

    A question's metadata ``where`` go to the inputs called ``filters``.
    """
    asking = _Asking(
        text_embedder=text_embedder,
        query_socket=query_socket,
        documents_socket=documents_socket,
        inputs=inputs,
    )
    settings = RunSettings(name=name, retries=retries, retry_wait=retry_wait, progress=progress)
    return _hooks.run_system(asking.system(retriever), benchmark, settings, pool)


async def arun_retriever(
    retriever: Any,
    benchmark: Benchmark | str,
    *,
    text_embedder: Any = None,
    query_socket: str | Sequence[str] | None = None,
    documents_socket: str | None = None,
    inputs: Mapping[str, Any] | None = None,
    pool: Iterable[Document] | None = None,
    name: str | None = None,
    retries: int = 2,
    retry_wait: float = 0.5,
    progress: Progress | None = None,
    concurrency: int = 8,
) -> Run:
    """`run_retriever` by the asynchronous method, with at most `concurrency` questions at a time."""
    asking = _Asking(
        text_embedder=text_embedder,
        query_socket=query_socket,
        documents_socket=documents_socket,
        inputs=inputs,
    )
    settings = RunSettings(
        name=name,
        retries=retries,
        retry_wait=retry_wait,
        progress=progress,
        concurrency=concurrency,
    )
    return await _hooks.arun_system(asking.system(retriever), benchmark, settings, pool)


def evaluate_retriever(
    retriever: Any,
    benchmark: Benchmark | str,
    *,
    measures: Sequence[Measure | str] | Measure | str | None = None,
    k: Depth | Sequence[Depth] = DEPTHS,
    counter: str = "cl100k_base",
    text_embedder: Any = None,
    query_socket: str | Sequence[str] | None = None,
    documents_socket: str | None = None,
    inputs: Mapping[str, Any] | None = None,
    pool: Iterable[Document] | None = None,
    name: str | None = None,
    retries: int = 2,
    retry_wait: float = 0.5,
    progress: Progress | None = None,
) -> Report:
    """Score a deployed retriever, or a whole pipeline.

    Args:
        retriever: see `run_retriever`, as for the arguments from `text_embedder` on.
        benchmark: documents, questions and evidence; or the name of a collection that ships with chunkcore.
        measures: one or a list, such as ``["Recall@1000tok", "Precision@5"]``; by default Recall, Precision, IoU and
            F1 at `k`, and PrecisionOmega if there is a `pool`.
        k: the depths of the default measures: an equal budget of tokens first, then so many hits.
        counter: whose tokens are counted.

    Raises `OptionError`, before any question is asked: an unknown measure, depth or counter.
    """
    scoring = Scoring(benchmark, measures, k, counter, with_pool=pool is not None)
    run = run_retriever(
        retriever,
        scoring.benchmark,
        text_embedder=text_embedder,
        query_socket=query_socket,
        documents_socket=documents_socket,
        inputs=inputs,
        pool=pool,
        name=name,
        retries=retries,
        retry_wait=retry_wait,
        progress=progress,
    )
    return scoring.report(run)


async def aevaluate_retriever(
    retriever: Any,
    benchmark: Benchmark | str,
    *,
    measures: Sequence[Measure | str] | Measure | str | None = None,
    k: Depth | Sequence[Depth] = DEPTHS,
    counter: str = "cl100k_base",
    text_embedder: Any = None,
    query_socket: str | Sequence[str] | None = None,
    documents_socket: str | None = None,
    inputs: Mapping[str, Any] | None = None,
    pool: Iterable[Document] | None = None,
    name: str | None = None,
    retries: int = 2,
    retry_wait: float = 0.5,
    progress: Progress | None = None,
    concurrency: int = 8,
) -> Report:
    """`evaluate_retriever` by the asynchronous method, with at most `concurrency` questions at a time."""
    scoring = Scoring(benchmark, measures, k, counter, with_pool=pool is not None)
    run = await arun_retriever(
        retriever,
        scoring.benchmark,
        text_embedder=text_embedder,
        query_socket=query_socket,
        documents_socket=documents_socket,
        inputs=inputs,
        pool=pool,
        name=name,
        retries=retries,
        retry_wait=retry_wait,
        progress=progress,
        concurrency=concurrency,
    )
    return scoring.report(run)
