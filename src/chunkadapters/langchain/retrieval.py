"""LangChain's retrievers: scores, passages behind them and from a saved index; late embeddings, and segments."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
    Callbacks,
)
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import patch_config
from pydantic import field_validator

from chunkadapters.filters import filters_in, filters_within
from chunkadapters.langchain.splitter import KEYS, part_of, source_of
from chunkadapters.passages import (
    STRICT,
    IndexFields,
    Limits,
    Passage,
    PassageOptions,
    core_documents,
)
from chunkadapters.places import is_derived, marks_of
from chunkadapters.scores import (
    DeployedRetriever,
    QuestionScorer,
    RetrieverHooks,
    measures_of,
)
from chunkcore.errors import DataError, OptionError, kind_of
from chunkcore.locating import Hit, names_of, score_of
from chunkcore.text import Document as CoreDocument

if TYPE_CHECKING:
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark
    from chunkcore.evaluation.measures import Measure


def hit_of(document: Any) -> Hit:
    """A document as a hit. Raises `DataError` for anything else."""
    if not isinstance(document, Document):
        raise DataError(
            f"expected LangChain documents, got a {type(document).__name__} among the answers"
        )
    metadata, text = document.metadata, document.page_content
    score = metadata.get("score", metadata.get("relevance_score"))
    source = metadata.get("source_id") or metadata.get("source")
    part = part_of(str(source), metadata) if source else ""
    return Hit(
        text=text,
        score=score_of(score),
        names=names_of(part, metadata.get("source_id"), metadata.get("source"), document.id),
        # LangChain's own splitters search for their chunks, and state no end.
        stated=KEYS.stated(metadata, text, searched=metadata.get(KEYS.end) is None),
        derived=is_derived(metadata),
        document=part,
        metadata=metadata,
        id=document.id or "",
    )


# ---- Scores


def _system(retriever: Runnable[str, list[Document]]) -> DeployedRetriever:
    if isinstance(retriever, Runnable):
        return _asked_with(retriever, {})
    if hasattr(retriever, "as_retriever"):
        raise DataError(
            f"{type(retriever).__name__} is a store, not a retriever: pass its .as_retriever()"
        )
    raise DataError(
        f"expected a LangChain retriever or runnable, got {kind_of(retriever)}; "
        "wrap a function as RunnableLambda(function)"
    )


def _asked_with(
    retriever: Runnable[str, list[Document]], arguments: Mapping[str, Any]
) -> DeployedRetriever:
    """A retriever that is asked with these arguments; a filter of one question is the argument ``filter``."""

    def filtered(where: Mapping[str, Any]) -> DeployedRetriever:
        if isinstance(retriever, BaseRetriever) and not retriever._expects_other_args:
            raise OptionError(
                f"a question has a filter (where), and {type(retriever).__name__} drops the arguments of a call"
            )
        return _asked_with(retriever, {"filter": dict(where)})

    ask, aask = partial(retriever.invoke, **arguments), partial(retriever.ainvoke, **arguments)
    return DeployedRetriever(retriever.get_name(), ask, aask, retriever, filtered)


_hooks: RetrieverHooks[Runnable[str, list[Document]], Document] = RetrieverHooks(
    _system, hit_of, "LangChain documents", "; .pick() the documents' key"
)
run_retriever = _hooks.run_retriever
arun_retriever = _hooks.arun_retriever
evaluate_retriever = _hooks.evaluate_retriever
aevaluate_retriever = _hooks.aevaluate_retriever


Evaluator = Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]


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
    `DataError`, which LangSmith shows, for a question that the benchmark lacks and for outputs without documents.

    Args:
        benchmark: with the examples' questions; or the name of a collection that ships with chunkcore.
        measures: one result each.
        question_key: of an example's inputs: the question, as text or id.
        documents_key: of the application's outputs: the retrieved documents, or dictionaries of them.
        counter: counts the tokens.

    Raises `OptionError`: an unknown collection, measure or counter.
    """
    parsed = measures_of(measures)
    scorer = QuestionScorer(benchmark, counter)

    def score_spans(inputs: dict[str, Any], outputs: dict[str, Any]) -> dict[str, Any]:
        question = _held(inputs, question_key, "inputs")
        documents = _held(outputs, documents_key, "outputs")
        if not isinstance(question, str) or not isinstance(documents, list | tuple):
            raise DataError(
                f"expected a question's text and a list of documents, got {type(question).__name__} and "
                f"{type(documents).__name__}"
            )
        hits = [hit_of(_as_document(document)) for document in documents]
        values = scorer.scores(question, hits, parsed)
        return {
            "results": [
                {"key": str(key), "score": value} for key, value in zip(parsed, values, strict=True)
            ]
        }

    return score_spans


def _as_document(row: object) -> object:
    """A document as it was; one of a stored experiment, which is a dictionary, as a `Document`."""
    if not isinstance(row, Mapping):
        return row
    values = row.get("kwargs", row)  # LangChain's own serialization
    text = values.get("page_content") if isinstance(values, Mapping) else None
    if not isinstance(text, str):
        raise DataError(f"expected a document with page_content, got the keys {', '.join(row)}")
    return Document(page_content=text, metadata=values.get("metadata") or {}, id=values.get("id"))


def _held(mapping: Any, key: str, what: str) -> Any:
    if not isinstance(mapping, Mapping) or key not in mapping:
        keys = (
            ", ".join(map(str, mapping)) if isinstance(mapping, Mapping) else type(mapping).__name__
        )
        raise DataError(
            f"the {what} have no {key!r}, but {keys or 'nothing'}: name the key that has it"
        )
    return mapping[key]


# ---- Passages

_LIMITS = ("max_tokens", "k")


def _core_document(document: Document) -> CoreDocument:
    source, _ = source_of(document.id, document.page_content, document.metadata)
    name = part_of(source, document.metadata)
    return CoreDocument(name, document.page_content, document.metadata, marks_of(document.metadata))


class _Indexed(IndexFields):
    @staticmethod
    def to_core(documents: Any) -> list[CoreDocument]:
        return core_documents(documents, Document, "LangChain", _core_document)


def _documents(passages: Iterable[Passage], hits: Sequence[Document]) -> list[Document]:
    return [_document(passage, hits) for passage in passages]


def _document(passage: Passage, hits: Sequence[Document]) -> Document:
    text = passage.retrieved.text
    if passage.document is None:
        hit = hits[passage.hits[0]]
        return hit if text == hit.page_content else hit.model_copy(update={"page_content": text})
    metadata = passage.metadata([hit.metadata for hit in hits], KEYS)
    metadata.setdefault("source", passage.document.id)
    metadata |= {"source_id": passage.document.id, "passage_score": passage.retrieved.score}
    return Document(page_content=text, metadata=metadata, id=passage.id)


class PassageCompressor(PassageOptions, _Indexed, BaseDocumentCompressor):
    """Passages behind a retriever: exact spans of any size under a budget of tokens.

    For ``ContextualCompressionRetriever(base_compressor=PassageCompressor(index=folder, filters=None), ...)``, behind
    any retriever with any chunks: the guide on passages (docs/guides/passages.md) has what counts.

    A passage has the document's own text; ``start_index``, ``end_index``, ``source_id``, the best hit's other metadata,
    ``pages`` where the document has pages, and ``passage_score``, comparable within one answer. A hit that is in no
    document of the index stays as it is, at its rank.

    The index is a copy of the texts: after documents have changed, save it anew
    (``index.update(documents).save(folder)``). A folder is opened again at the next question.

    Args:
        index: a saved index's folder (``chunkcore index docs/ -o folder``), or an index of the retriever passages.
        documents: instead of an index: LangChain's or chunkcore's documents, indexed in memory, by words.
        words, balance, max_tokens, k: see `chunkadapters.passages.PassageOptions`.
        filters: what the retriever's search is filtered by, in any framework's form; its metadata keys count, not its
            values. None: nothing. It cannot be seen here: by default "safe" is as "text", and a warning says so.
        counter: of tokens, the language model's own: a name (``"o200k_base"``, ``"hf:..."``), or a function such as
            ``model.get_num_tokens``.

    Raises `ValueError`: an option is out of range, or there is no index.

    Warns `PassageWarning` once, of hits in no document, and of each document that has changed.

    >>> tea = Document(page_content="Tea is hot. It boils. Ice is cold.", metadata={"source": "tea.md"})
    >>> hits = [Document(page_content="Tea is hot. It", metadata={"source": "tea.md"})]
    >>> compressor = PassageCompressor(documents=[tea], filters=None)
    >>> [found.page_content for found in compressor.compress_documents(hits, "What boils?")]
    ['Tea is hot. It boils. Ice is cold.']
    """

    model_config = STRICT

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """The passages, best first. Raises `DataError` for anything but documents."""
        return _documents(
            self._local.opened.behind(query, list(map(hit_of, documents)), self), documents
        )


class PassageRetriever(PassageOptions, _Indexed, BaseRetriever):
    """A retriever, with passages behind it: ``PassageRetriever(your_retriever, index=folder)``.

    See `PassageCompressor` for the options and for what comes out. ``k`` and ``max_tokens`` of a call are the limits of
    its answer; every other keyword argument and the configuration go to the retriever, which must take them.

    Args:
        retriever: any retriever, or runnable from a question to documents.
        filters: for what cannot be seen of the retriever's: a filter that is a function, one inside a function or a
            class of your own, or a rule of the store itself. See `PassageCompressor`.
        index, documents, words, balance, max_tokens, k, counter: see `PassageCompressor`.

    Raises `ValueError`: an option is out of range, there is no index, or something is no retriever.

    >>> from langchain_core.runnables import RunnableLambda
    >>> tea = Document(page_content="Tea is hot. It boils. Ice is cold.", metadata={"source": "tea.md"})
    >>> retriever = PassageRetriever(RunnableLambda(lambda question: [tea]), documents=[tea], filters=None)
    >>> [found.page_content for found in retriever.invoke("Is tea hot?")]
    ['Tea is hot. It boils. Ice is cold.']
    """

    model_config = STRICT

    retriever: Any

    def __init__(self, retriever: Any = None, **options: Any) -> None:
        super().__init__(**{"retriever": retriever, **options})

    @field_validator("retriever")
    @classmethod
    def _check_retriever(cls, retriever: Any) -> Any:
        if hasattr(retriever, "as_retriever"):
            raise OptionError(
                f"{type(retriever).__name__} is a store, not a retriever: pass its .as_retriever()"
            )
        if not isinstance(retriever, Runnable):
            expected = "a LangChain retriever or RunnableLambda(function); an index alone is an IndexRetriever(index)"
            raise OptionError(f"retriever is {expected}; got {kind_of(retriever)}")
        return retriever

    def invoke(
        self,
        input: str,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        return super().invoke(input, config, call_config=config, **kwargs)

    async def ainvoke(
        self,
        input: str,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        return await super().ainvoke(input, config, call_config=config, **kwargs)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **arguments: Any
    ) -> list[Document]:
        options, config, others = self._read(arguments)
        hits = self.retriever.invoke(
            query, patch_config(config, callbacks=run_manager.get_child()), **others
        )
        return self._passages(query, hits, options, self._filters(config, others))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **arguments: Any
    ) -> list[Document]:
        options, config, others = self._read(arguments)
        hits = await self.retriever.ainvoke(
            query, patch_config(config, callbacks=run_manager.get_child()), **others
        )
        return await asyncio.to_thread(
            self._passages, query, hits, options, self._filters(config, others)
        )

    def _read(
        self, arguments: dict[str, Any]
    ) -> tuple[PassageOptions, RunnableConfig | None, dict[str, Any]]:
        """The limits of this call, its configuration, and the arguments that go to the retriever."""
        others = {
            name: value
            for name, value in arguments.items()
            if name not in (*_LIMITS, "call_config")
        }
        child = self.retriever
        if (
            others and isinstance(child, BaseRetriever) and not child._expects_other_args
        ):  # which drops them in silence
            raise OptionError(
                f"{type(child).__name__} takes no {', '.join(others)} in a call: give it its own options"
            )
        options = {name: getattr(self, name) for name in PassageOptions.model_fields}
        limits = {name: arguments[name] for name in _LIMITS if name in arguments}
        return PassageOptions(**options | limits), arguments.get("call_config"), others

    def _filters(self, config: RunnableConfig | None, others: Mapping[str, Any]) -> list[Any]:
        """What the retriever filters by in this call, as far as that can be seen."""
        configured = {spec.id for spec in self.retriever.config_specs}
        values = (config or {}).get("configurable") or {}
        options = dict(others) | {
            name: value for name, value in values.items() if name in configured
        }
        return filters_within(self.retriever) + filters_in(options)

    def _passages(
        self, query: str, documents: Any, options: PassageOptions, filters: Sequence[Any]
    ) -> list[Document]:
        if not isinstance(documents, list | tuple):
            raise DataError(
                f"expected a list of documents of the retriever, got {type(documents).__name__}"
            )
        return _documents(
            self._local.opened.behind(query, list(map(hit_of, documents)), options, filters),
            documents,
        )


class IndexRetriever(Limits, _Indexed, BaseRetriever):
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

    model_config = STRICT

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun | None = None,
        filter: Mapping[str, Any] | Callable[[Document], bool] | None = None,  # noqa: A002
        **arguments: Any,
    ) -> list[Document]:
        if unknown := sorted(arguments.keys() - set(_LIMITS)):
            raise OptionError(f"a call takes k, max_tokens and filter, got {', '.join(unknown)}")
        if not (filter is None or callable(filter) or isinstance(filter, Mapping)):
            raise OptionError(
                f"filter is a mapping of metadata, or a function of a document; got {filter!r:.80}"
            )
        limits = Limits(**{name: getattr(self, name) for name in Limits.model_fields} | arguments)

        def allowed(metadata: Mapping[str, Any]) -> bool:
            assert callable(filter)
            return filter(Document(page_content="", metadata=dict(metadata)))

        return _documents(
            self._local.opened.passages(query, limits, allowed if callable(filter) else filter), []
        )

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: Any, **arguments: Any
    ) -> list[Document]:
        return await asyncio.to_thread(self._get_relevant_documents, query, **arguments)
