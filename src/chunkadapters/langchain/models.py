"""LangChain's models as chunkcore's, and chunkcore's embedders as LangChain's."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from inspect import signature
from typing import Any, TypeAlias

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import BaseMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    Runnable,
    RunnableConfig,
    RunnableLambda,
    RunnableSequence,
    RunnableWithFallbacks,
)
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.vectorstores import VectorStoreRetriever

from chunkadapters.models import BridgedEmbedder, BridgedLLM, embedded, json_text, titled
from chunkadapters.places import MetadataLike
from chunkcore.models import DEFAULT_MODEL, Embedder, get_embedder
from chunkcore.models.endpoint import reply_of
from chunkcore.models.llm.base import Messages, Reply, Schema


class ChunkcoreEmbeddings(Embeddings):
    """A chunkcore embedder as LangChain's embeddings.

    For chunkcore's own models, and for its cache before any other: ``ChunkcoreEmbeddings(CachedEmbedder(
    as_embedder(OpenAIEmbeddings()), EmbeddingCache("vectors.sqlite")))`` embeds each text once.

    Args:
        embedder: an embedder or its name. Raises `OptionError`: unknown model.

    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> len(ChunkcoreEmbeddings(as_embedder(DeterministicFakeEmbedding(size=8))).embed_query("tea"))
    8
    """

    def __init__(self, embedder: Embedder | str = DEFAULT_MODEL) -> None:
        self.embedder = get_embedder(embedder)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return embedded(self.embedder, texts)

    def embed_query(self, text: str) -> list[float]:
        return embedded(self.embedder, [text], queries=True)[0]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.embedder.name!r})"


def as_embedder(
    embeddings: Embeddings,
    *,
    fingerprint: str | None = None,
    max_tokens: int | None = None,
) -> BridgedEmbedder:
    """Any LangChain embeddings as an `Embedder`, for chunkers, indexes, caches and comparisons.

    `ChunkcoreTextSplitter` takes LangChain's embeddings as they are; wrap them elsewhere:
    ``CachedEmbedder(as_embedder(OpenAIEmbeddings()))``. Options: see `BridgedEmbedder`.

    Raises `OptionError`: no LangChain embeddings, or a fingerprint is required, because their settings name no model.

    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> embedder = as_embedder(DeterministicFakeEmbedding(size=8))
    >>> embedder.name, embedder.embed_documents(["tea", "coffee"]).shape
    ('langchain:DeterministicFakeEmbedding', (2, 8))
    """
    return _Embedder(embeddings, fingerprint, max_tokens)


def as_llm(
    model: Runnable[Any, Any],
    *,
    fingerprint: str | None = None,
    concurrency: int = 1,
) -> BridgedLLM:
    """Any LangChain chat model, or a runnable from messages to a message or a text, as an `LLM`.

    JSON schemas go through ``with_structured_output`` if the model has it; token counts are its ``usage_metadata``.
    Options: see `BridgedLLM`.

    Raises `OptionError`: no language model, a fingerprint is required, or concurrency is under 1.

    >>> from langchain_core.language_models import FakeListChatModel
    >>> as_llm(FakeListChatModel(responses=["Yes."])).complete([{"role": "user", "content": "Tea?"}]).text
    'Yes.'
    """
    return _LLM(model, fingerprint, concurrency)


def as_model(value: object) -> Any:
    """An option's value: LangChain's models as chunkcore's, others unchanged."""
    if isinstance(value, Embeddings):
        return as_embedder(value)
    return as_llm(value) if isinstance(value, Runnable) else value


class _Embedder(BridgedEmbedder):
    framework, kinds = "langchain", (Embeddings,)
    methods = ("embed_documents", "embed_query")


class _LLM(BridgedLLM):
    framework, kinds = "langchain", (BaseLanguageModel, Runnable)
    model: Runnable[Any, Any]

    def _ask(self, messages: Messages, schema: Schema | None) -> Reply:
        model = self.model
        if schema is not None:
            if not isinstance(model, BaseLanguageModel):
                raise NotImplementedError  # a sequence of runnables has no such method
            model = model.with_structured_output(titled(schema), include_raw=True)
        return _read(model.invoke([(turn["role"], turn["content"]) for turn in messages]))


def _read(answer: object) -> Reply:
    if isinstance(answer, dict) and "raw" in answer:
        raw, parsed = answer["raw"], answer.get("parsed")
        reply, calls = _read(raw), getattr(raw, "tool_calls", None)
        if parsed is None and calls and not reply.text:
            parsed = calls[0].get("args")
        if parsed is None:
            return reply  # the answer was unreadable: keep its text
        return replace(reply, text=json_text(parsed))
    if isinstance(answer, BaseMessage):
        metadata = getattr(answer, "usage_metadata", None)
        return reply_of(
            str(answer.text), metadata, answer.response_metadata, answer.additional_kwargs
        )
    return reply_of(answer)


AnyRunnable: TypeAlias = Runnable[Any, Any]
_Calls: TypeAlias = list[tuple[AnyRunnable, RunnableConfig | None]]

# What hands the arguments of a call on to the runnables inside of it.
_WRAPPERS = (DynamicRunnable, RunnableBindingBase, RunnableWithFallbacks, RunnableSequence)
_USUAL_K = 4  # of a vector store that is asked for no number


def dropping(runnable: AnyRunnable, names: Collection[str]) -> AnyRunnable | None:
    """The runnable that would drop the arguments of a call in silence, of one and all inside; None if none would.

    A function that takes them is believed to use them.
    """
    for part in _reached(runnable):
        if isinstance(part, RunnableSequence):  # the first step alone gets them
            for retriever in _retrievers(part.steps[1:]):
                return retriever
        elif isinstance(part, BaseRetriever):
            if not part._expects_other_args:
                return part
        elif not isinstance(part, (RunnableLambda, *_WRAPPERS)):
            takes = signature(part.invoke).parameters
            if not set(names) <= takes.keys():
                return part
    return None


def with_filter(runnable: AnyRunnable) -> AnyRunnable | None:
    """The runnable, of one and all inside, that has a filter which the filter of a call would replace; None if none."""
    for part in _reached(runnable):
        for field in ("search_kwargs", "kwargs"):
            options = getattr(part, field, None)
            if isinstance(options, Mapping) and options.get("filter"):
                return part
    return None


def filter_in_form(runnable: AnyRunnable, where: MetadataLike) -> object:
    """Equal values of metadata in the form of the vector store inside, where that is Chroma or Qdrant; else `where`."""
    stores: dict[int, Any] = {}
    for part in _reached(runnable):
        if isinstance(part, VectorStoreRetriever):
            stores[id(part.vectorstore)] = part.vectorstore
    if len(stores) != 1:
        return where
    (store,) = stores.values()
    names = {cls.__name__ for cls in type(store).__mro__}
    if "Chroma" in names and len(where) > 1:
        return {"$and": [{key: value} for key, value in where.items()]}
    if "QdrantVectorStore" not in names:
        return where
    models = import_module("qdrant_client.models")
    conditions = []
    for key, value in where.items():
        condition = models.FieldCondition(key=f"{store.metadata_payload_key}.{key}")
        if type(value) in (int, float):
            condition.range = models.Range(gte=value, lte=value)
        else:
            condition.match = models.MatchValue(value=value)
        conditions.append(condition)
    return models.Filter(must=conditions)


def _reached(runnable: AnyRunnable, config: RunnableConfig | None = None) -> Iterator[AnyRunnable]:
    """The runnable, and all inside of it that get the arguments of its call."""
    yield runnable
    for child, inner in _called_by(runnable, config):
        yield from _reached(child, inner)


def _called_by(runnable: AnyRunnable, config: RunnableConfig | None) -> _Calls:
    """The runnables to which one hands a call's arguments, with the configuration that they are called with."""
    if isinstance(runnable, DynamicRunnable):
        return [runnable.prepare(config)]
    if isinstance(runnable, RunnableBindingBase):
        return [(runnable.bound, runnable._merge_configs(config))]
    if isinstance(runnable, RunnableWithFallbacks):
        return [(child, config) for child in runnable.runnables]
    if isinstance(runnable, RunnableSequence):
        return [(runnable.first, config)]
    called: _Calls = []
    if isinstance(runnable, BaseRetriever):
        for child in _held(_inside(runnable)):
            if isinstance(child, (BaseRetriever, *_WRAPPERS)):
                # A retriever may hand its configuration on, or leave it to the context.
                called += [(child, config), (child, None)]
    return called


def _inside(runnable: AnyRunnable) -> object:
    """The fields of a runnable."""
    return vars(runnable), getattr(runnable, "__pydantic_private__", None)


def _held(value: object) -> Iterator[AnyRunnable]:
    """The runnables within lists and mappings of any depth."""
    if isinstance(value, Runnable):
        yield value
    elif isinstance(value, Mapping):
        yield from _held(list(value.values()))
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _held(item)


def _retrievers(value: object) -> Iterator[BaseRetriever]:
    for runnable in _held(value):
        if isinstance(runnable, BaseRetriever):
            yield runnable
        else:
            yield from _retrievers(_inside(runnable))


def asking_for(runnable: AnyRunnable, count: int) -> dict[str, int] | None:
    """The arguments of a call that ask the vector stores inside for at least so many hits; None: it takes no number.

    Some choose their k hits among the nearest `fetch_k`, by default 20: by maximal marginal relevance, or by a filter.
    """
    counts, fetched = [count], [count]
    all_choose = True
    for part in _reached(runnable):
        if isinstance(part, VectorStoreRetriever):
            search = type(part)._get_relevant_documents
            if search is not VectorStoreRetriever._get_relevant_documents:
                return None
            counts.append(int(part.search_kwargs.get("k", _USUAL_K)))
            fetched.append(part.search_kwargs.get("fetch_k", count))
            takes = signature(part.vectorstore.similarity_search).parameters
            all_choose &= part.search_type == "mmr" or "fetch_k" in takes
        elif isinstance(part, RunnableSequence) or not isinstance(part, _WRAPPERS):
            return None
        elif isinstance(part, RunnableBindingBase):
            counts.append(part.kwargs.get("k", count))
    most = max(counts)
    return {"k": most, "fetch_k": max(most, *fetched)} if all_choose else {"k": most}
