"""LangChain's retrievers: scores, passages behind them and from a saved index."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
    Callbacks,
)
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    Runnable,
    RunnableConfig,
    ensure_config,
)
from langchain_core.runnables.config import var_child_runnable_config
from pydantic import SkipValidation

from chunkadapters.behind import (
    BALANCE,
    FETCH_K,
    Indexed,
    IndexLike,
    MaxTokens,
    Order,
    Passage,
    Show,
    Shown,
    TokenCounterLike,
    core_documents,
)
from chunkadapters.langchain.models import (
    asking_for,
    dropping,
    filter_in_form,
    with_filter,
)
from chunkadapters.langchain.splitter import KEYS, source_of
from chunkadapters.places import Metadata, part_of
from chunkadapters.scores import (
    DeployedRetriever,
    QuestionScorer,
    RetrieverHooks,
    check_is_retriever,
    check_obeyed,
)
from chunkcore.errors import DataError, OptionError, echo, kind_of
from chunkcore.locating import Hit, names_of
from chunkcore.options import check_number, suggesting
from chunkcore.retrieval.where import Where, allowed_documents, check_predicate
from chunkcore.text import Document as CoreDocument

if TYPE_CHECKING:
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark
    from chunkcore.evaluation.measures import Measure


def hit_of(document: Document) -> Hit:
    """A document as a hit."""
    metadata, text = document.metadata, document.page_content
    sources = names_of(metadata.get("source_id"), metadata.get("source"))
    part = part_of(sources[0], metadata) if sources else ""
    return KEYS.hit(
        text,
        metadata,
        (part, *sources, document.id),
        metadata.get("score", metadata.get("relevance_score")),
        document=part,
        id=document.id or "",
        # LangChain's own splitters search for their chunks, and state no end.
        searched=metadata.get(KEYS.end) is None,
    )


# ---- Scores

RetrieverLike = Runnable[str, list[Document]]


def _system(retriever: RetrieverLike, arguments: Mapping[str, Any] = {}) -> DeployedRetriever:
    """A retriever that is asked with these arguments; a filter of one question is the argument ``filter``."""
    if not isinstance(retriever, Runnable):
        raise DataError(
            f"expected a LangChain retriever or runnable, got {kind_of(retriever)}; "
            "wrap a function as RunnableLambda(function)"
        )

    def filtered(where: Mapping[str, object]) -> DeployedRetriever:
        dropped_by = dropping(retriever, ["filter"])
        if dropped_by is not None:
            name = type(dropped_by).__name__
            raise OptionError(f"a question has a filter (where), and {name} takes none in a call")
        replaced = with_filter(retriever)
        if replaced is not None:
            raise OptionError(
                f"a question has a filter (where), which would replace that of {type(replaced).__name__}: give each "
                "question both, and the retriever none"
            )
        return _system(retriever, {"filter": filter_in_form(retriever, _Filter(where))})

    advice = ""
    if arguments:
        advice = (
            "; the retriever got the question's filter (where) as filter=. If its store wants another form, give "
            "RunnableLambda(lambda question, filter: retriever.invoke(question, filter=form_of(filter)))"
        )
    ask, aask = partial(retriever.invoke, **arguments), partial(retriever.ainvoke, **arguments)
    return DeployedRetriever(retriever.get_name(), ask, aask, retriever, filtered, advice)


class _Filter(dict[str, object]):
    """Equal values of metadata; for stores whose filter is a function of a document, or of its metadata, also that."""

    def __call__(self, document: Document | Metadata) -> bool:
        metadata = document.metadata if isinstance(document, Document) else document
        (allowed,) = allowed_documents(dict(self), [CoreDocument("hit", "", metadata)])
        return bool(allowed)


_hooks: RetrieverHooks[RetrieverLike] = RetrieverHooks(
    _system, hit_of, Document, "LangChain documents", "; .pick() the documents' key"
)
run_retriever = _hooks.run_retriever
arun_retriever = _hooks.arun_retriever
evaluate_retriever = _hooks.evaluate_retriever
aevaluate_retriever = _hooks.aevaluate_retriever


Values = dict[str, Any]
Evaluator = Callable[[Values, Values], Values]


def langsmith_evaluator(
    benchmark: Benchmark | str,
    measures: Sequence[Measure | str] | str = ("Recall@1000tok", "Recall@5", "Precision@5"),
    *,
    question_key: str = "question",
    documents_key: str = "documents",
    counter: str = "cl100k_base",
) -> Evaluator:
    """A function that scores an application's retrieval, for ``client.evaluate(app, evaluators=[...])``.

    It maps inputs and outputs to ``{"results": [{"key": "Recall@1000tok", "score": 0.8}, ...]}``, and raises
    `DataError`, which LangSmith shows, for a question that the benchmark lacks and a dictionary that is no document.

    Args:
        benchmark: with the examples' questions; or the name of a collection that ships with chunkcore.
        measures: one result each.
        question_key: of an example's inputs: the question, as text or id.
        documents_key: of the application's outputs: the retrieved documents, or dictionaries of them.
        counter: counts the tokens.

    Raises `OptionError`: an unknown collection, measure or counter.
    """
    from chunkcore.evaluation.measures import retrieval_measures

    parsed = list(retrieval_measures(measures))
    scorer = QuestionScorer(benchmark, counter)

    def score_spans(inputs: Values, outputs: Values) -> Values:
        for key, values in ((question_key, inputs), (documents_key, outputs)):
            if key not in values:
                listed = ", ".join(values) or "nothing"
                raise DataError(f"expected {key!r} in the example, got {listed}: did the app fail?")
        question, documents = inputs[question_key], outputs[documents_key]
        hits = _hooks.hits(list(map(_as_document, documents)))
        rows = zip(parsed, scorer.scores(question, hits, parsed), strict=True)
        return {"results": [{"key": str(measure), "score": score} for measure, score in rows]}

    return score_spans


def _as_document(row: Document | Mapping[str, Any]) -> Document:
    """A document as it was; one of a stored experiment, which is a dictionary, as a `Document`."""
    if not isinstance(row, Mapping):
        return row
    values = row.get("kwargs", row)  # LangChain's own serialization
    text = values.get("page_content") if isinstance(values, Mapping) else None
    if not isinstance(text, str):
        raise DataError(f"expected a document with page_content, got the keys {', '.join(row)}")
    return Document(page_content=text, metadata=values.get("metadata") or {}, id=values.get("id"))


# ---- Passages


def _core_document(document: Document) -> CoreDocument:
    source, _ = source_of(document.id, document.page_content, document.metadata)
    name = part_of(source, document.metadata)
    return CoreDocument(name, document.page_content, document.metadata)


def _document(passage: Passage, hits: Sequence[Document]) -> Document:
    text = passage.retrieved.text
    if passage.document is None:
        hit = hits[passage.hits[0]]
        # A store may hold this very object.
        return hit.model_copy(update={"page_content": text, "metadata": deepcopy(hit.metadata)})
    name, spans = passage.document.id, passage.retrieved.spans
    if KEYS.start in passage.document.metadata:  # chunks were given as documents
        name, origin = source_of(name, passage.document.text, passage.document.metadata)
        spans = origin.place(spans)
    metadata = {
        "source": name,
        **passage.metadata([hit.metadata for hit in hits], KEYS),
        **KEYS.write(spans),
        "source_id": name,
        "passage_score": passage.retrieved.score,
    }
    return Document(page_content=text, metadata=metadata, id=passage.id)


Documents = Iterable[Document | CoreDocument]


class _Indexed(Indexed):
    def _core_documents(self) -> list[CoreDocument] | None:
        return core_documents(self.documents, Document, "LangChain", _core_document)


class PassageCompressor(BaseDocumentCompressor, _Indexed, Shown):
    """Passages behind a retriever: exact spans of its hits' text, of any size, under a budget of tokens.

    For ``ContextualCompressionRetriever(base_compressor=PassageCompressor(index=folder), ...)``, behind any retriever
    with any chunks. Let the retriever give about 100 hits. docs/guides/passages.md says how passages are chosen.

    A passage has the document's own text; ``start_index``, ``end_index``, ``source_id``, the metadata that its hits
    share, ``pages`` where the document has pages, and ``passage_score``, comparable within one answer. A hit without a
    place in the index stays as it is, at its rank.

    The index is a copy of the texts: after documents have changed, save it anew
    (``index.update(documents).save(folder)``). A folder is opened again at the next question.

    Args:
        index: a saved index's folder (``chunkcore index docs/ -o folder``), or an index of the retriever passages.
        documents: instead of an index: LangChain's or chunkcore's documents, indexed in memory, by words.
        show, max_tokens, k, balance, order: see `chunkadapters.behind.Behind`.
        counter: your language model's tokenizer: a name (``"o200k_base"``, ``"hf:..."``), or a function such as
            ``model.get_num_tokens``.

    Raises `ValueError`: an option is out of range, or there is no index.

    Warns `PassageWarning` once about hits without a place, and about each document that has changed.

    >>> tea = Document(page_content="Tea is hot. It boils. Ice is cold.", metadata={"source": "tea.md"})
    >>> hits = [Document(page_content="Tea is hot. It boils.", metadata={"source": "tea.md"})]
    >>> [passage.page_content for passage in PassageCompressor(documents=[tea]).compress_documents(hits, "What boils?")]
    ['Tea is hot. It boils.']
    >>> compressor = PassageCompressor(documents=[tea], show="whole")
    >>> [passage.page_content for passage in compressor.compress_documents(hits, "What boils?")]
    ['Tea is hot. It boils. Ice is cold.']
    """

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """The passages, best first. Raises `DataError` for anything but documents."""
        passages = self._behind().passages(query, _hooks.hits(documents))
        return [_document(passage, documents) for passage in passages]


@contextmanager
def _for_children(config: RunnableConfig | None) -> Iterator[RunnableConfig]:
    """The whole configuration. Every runnable that is called meanwhile sees it, whatever its caller passes on."""
    whole = ensure_config(config)
    own = {"callbacks", "run_id", "run_name"}
    inherited = {key: value for key, value in whole.items() if key not in own}
    context = var_child_runnable_config.get() or {}
    token = var_child_runnable_config.set(cast(RunnableConfig, {**context, **inherited}))
    try:
        yield whole
    finally:
        var_child_runnable_config.reset(token)


class PassageRetriever(BaseRetriever, _Indexed, Shown):
    """A retriever, with passages behind it: ``PassageRetriever(your_retriever, index=folder)``.

    `PassageCompressor` has the options, and says what a passage contains. ``k`` and ``max_tokens`` of a call limit its
    answer. All other arguments of a call, and the configuration of the run, reach your retriever and the retrievers
    inside of it, or are refused.

    Args:
        retriever: any retriever, or runnable from a question to documents.
        fetch_k: the hits that the retriever is asked for: a vector store's, also behind ``bind``, ``with_config`` and
            the like, or one that has a field ``k``. None: as many as it gives by itself.
        index, documents, show, max_tokens, k, balance, counter, order: see `PassageCompressor`.

    Raises `ValueError`: an option is out of range, there is no index, or something is no retriever.

    Warns `PassageWarning` once, where the retriever cannot be asked for that many hits.

    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> from langchain_core.vectorstores import InMemoryVectorStore
    >>> store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    >>> tea = Document(page_content="Tea is hot. It boils. Ice is cold.", metadata={"source": "tea.md"})
    >>> _ = store.add_documents([tea])
    >>> retriever = PassageRetriever(store.as_retriever(), documents=[tea])
    >>> [passage.page_content for passage in retriever.invoke("Is tea hot?")]
    ['Tea is hot. It boils. Ice is cold.']
    """

    retriever: SkipValidation[RetrieverLike]
    fetch_k: SkipValidation[int | None] = FETCH_K

    @suggesting
    def __init__(
        self,
        retriever: RetrieverLike,
        index: IndexLike | None = None,
        *,
        documents: Documents | None = None,
        fetch_k: int | None = FETCH_K,
        show: Show = "hits",
        max_tokens: MaxTokens = 1000,
        k: int | None = None,
        balance: float = BALANCE,
        counter: TokenCounterLike = "cl100k_base",
        order: Order = "score",
        name: str | None = None,
        tags: list[str] | None = None,
        metadata: Metadata | None = None,
    ) -> None:
        fields = type(self).model_fields
        super().__init__(**{key: value for key, value in locals().items() if key in fields})

    def _check(self) -> None:
        check_is_retriever(self.retriever)
        if not isinstance(self.retriever, Runnable):
            refused = echo(self.retriever)
            raise OptionError(f"retriever: expected an instance of Runnable; got {refused}")
        if self.fetch_k is not None:
            check_number("fetch_k", self.fetch_k, 1)
        super()._check()

    def invoke(
        self,
        input: str,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        with _for_children(config) as whole:
            return super().invoke(input, whole, **kwargs)

    async def ainvoke(
        self,
        input: str,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        with _for_children(config) as whole:
            return await super().ainvoke(input, whole, **kwargs)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **arguments: Any
    ) -> list[Document]:
        call = _Call(self, **arguments)
        config: RunnableConfig = {"callbacks": run_manager.get_child()}
        try:
            hits = call.deep.invoke(query, config, **call.arguments)
        except ValueError as error:
            retriever = call.instead(error)
            hits = retriever.invoke(query, config, **call.arguments)
        return call.passages(query, hits)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **arguments: Any
    ) -> list[Document]:
        call = _Call(self, **arguments)
        config: RunnableConfig = {"callbacks": run_manager.get_child()}
        try:
            hits = await call.deep.ainvoke(query, config, **call.arguments)
        except ValueError as error:
            retriever = call.instead(error)
            hits = await retriever.ainvoke(query, config, **call.arguments)
        return await asyncio.to_thread(call.passages, query, hits)


class _Call:
    """How a retriever is asked one question, for `fetch_k` hits if it takes a number, and the passages of its hits.

    Raises `OptionError`: arguments of the call that something would drop, or that the index does not obey.
    """

    def __init__(
        self,
        asked: PassageRetriever,
        k: int | None = None,
        max_tokens: MaxTokens | None = None,
        **arguments: Any,
    ) -> None:
        self.behind, self.arguments = asked._behind(k, max_tokens), arguments
        self.retriever, self.fetch_k = asked.retriever, asked.fetch_k
        deep = _deep(self.retriever, self.fetch_k)
        self.takes_number = deep is not None
        self.deep = self.retriever if deep is None else deep
        if arguments:
            self.behind.check_call(arguments)
            dropped_by = dropping(self.retriever, arguments)
            if dropped_by is not None:
                raise OptionError(
                    f"{type(dropped_by).__name__} takes no {', '.join(arguments)} in a call: give it its own options"
                )

    def instead(self, error: ValueError) -> RetrieverLike:
        """The retriever as it is, where one of `fetch_k` hits raised an error."""
        return self.behind.index.instead_of(self.deep, self.retriever, self.fetch_k, error)

    def passages(self, query: str, documents: list[Document]) -> list[Document]:
        hits = _hooks.hits(documents)
        if not self.takes_number:
            self.behind.index.warn_of_few(self.retriever, len(hits), self.fetch_k)
        chosen = self.arguments.get("filter")
        if isinstance(chosen, Mapping):
            for hit in hits:
                check_obeyed(chosen, hit.metadata)
        return [_document(passage, documents) for passage in self.behind.passages(query, hits)]


def _deep(retriever: RetrieverLike, fetch_k: int | None) -> RetrieverLike | None:
    """The retriever, made to give at least so many hits; None if it takes no number. The k of ours is a limit."""
    if fetch_k is None or isinstance(retriever, _Indexed):
        return retriever
    arguments, field = asking_for(retriever, fetch_k), getattr(retriever, "k", None)
    if arguments is not None:
        return retriever.bind(**arguments)
    if isinstance(retriever, BaseRetriever) and type(field) is int:
        return retriever.model_copy(update={"k": max(field, fetch_k)})
    return None


Filter = Mapping[str, Any] | Callable[[Document], bool]


class IndexRetriever(BaseRetriever, _Indexed):
    """A saved index as a retriever: ``IndexRetriever("folder")``, no store.

    An index with vectors of the units gives the passages of the retriever `passages`, one without searches by words.
    A call may have ``k``, ``max_tokens``, and ``filter``: values of metadata, or a function of a `Document` that has
    the metadata and no text.

    Args:
        index, documents, max_tokens, k, counter: see `PassageCompressor`.

    Raises `ValueError`: an option is out of range, or there is no index.

    >>> tea = Document(page_content="Tea is hot.", metadata={"source": "tea.md", "level": 1})
    >>> retriever = IndexRetriever(documents=[tea])
    >>> [len(retriever.invoke("Is tea hot?", filter={"level": level})) for level in (1, 2)]
    [1, 0]
    """

    @suggesting
    def __init__(
        self,
        index: IndexLike | None = None,
        *,
        documents: Documents | None = None,
        max_tokens: MaxTokens = 1000,
        k: int | None = None,
        counter: TokenCounterLike = "cl100k_base",
        name: str | None = None,
        tags: list[str] | None = None,
        metadata: Metadata | None = None,
    ) -> None:
        fields = type(self).model_fields
        super().__init__(**{key: value for key, value in locals().items() if key in fields})

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun | None = None,
        k: int | None = None,
        max_tokens: MaxTokens | None = None,
        filter: Filter | None = None,  # noqa: A002
    ) -> list[Document]:
        passages = self._behind(k, max_tokens).alone(query, _where(filter))
        return [_document(passage, []) for passage in passages]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **arguments: Any
    ) -> list[Document]:
        return await asyncio.to_thread(self._get_relevant_documents, query, **arguments)


def _where(chosen: Filter | None) -> Where | None:
    if chosen is None or isinstance(chosen, Mapping):
        return chosen and dict(chosen)
    if not callable(chosen):
        raise OptionError(
            f"filter is a mapping of metadata, or a function of a document; got {echo(chosen)}"
        )
    check_predicate("filter", chosen)
    return lambda metadata: chosen(Document.model_construct(metadata=dict(metadata)))
