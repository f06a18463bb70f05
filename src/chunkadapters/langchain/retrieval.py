"""Scores for LangChain retrievers; late embeddings, and segments as small documents."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable

from chunkadapters.hits import Hit, late_vectors, names, segments_of
from chunkadapters.langchain.splitter import KEYS, SOURCE_PART, UNKNOWN, part_of, source_of
from chunkadapters.places import DERIVED, SEGMENTS, SPANS, digest, unused_id
from chunkadapters.retrieval import DeployedRetriever, QuestionScorer, RetrieverHooks, measures_of
from chunkcore.errors import DataError
from chunkcore.models import DEFAULT_MODEL, Embedder, LateEmbedder

if TYPE_CHECKING:
    from chunkcore.evaluation.benchmarks.benchmark import Benchmark
    from chunkcore.evaluation.measures import Measure


def hit_of(document: Any) -> Hit:
    """A document as a hit. Raises `DataError` for anything else."""
    if not isinstance(document, Document):
        raise DataError(f"expected LangChain documents, got a {type(document).__name__} among the answers")
    metadata, text = document.metadata, document.page_content
    score = metadata.get("score", metadata.get("relevance_score"))
    source = metadata.get("source_id") or metadata.get("source")
    part = part_of(str(source), metadata) if source else ""
    return Hit(
        text=text,
        score=float(score) if isinstance(score, Real) else 0.0,  # of NumPy, too, as rerankers give
        document_ids=names(part, metadata.get("source_id"), metadata.get("source"), document.id),
        spans=KEYS.spans_of(metadata, text),
        derived=metadata.get(DERIVED) is True,
        document=part,
    )


# ---- Scores


def _system(retriever: Runnable[str, list[Document]]) -> DeployedRetriever:
    if isinstance(retriever, Runnable):
        return DeployedRetriever(retriever.get_name(), retriever.invoke, retriever.ainvoke, retriever)
    if hasattr(retriever, "as_retriever"):
        raise DataError(f"{type(retriever).__name__} is a store, not a retriever: pass its .as_retriever()")
    raise DataError(
        f"expected a LangChain retriever or runnable, got {type(retriever).__name__}; "
        "wrap a function as RunnableLambda(function)"
    )


def _hits(answer: Any) -> list[Hit]:
    if isinstance(answer, list | tuple):
        pairs = [(hit_of(document), document.metadata) for document in answer]
        # A place in an unknown part of a source is no place in the source.
        return [replace(hit, spans=()) if SOURCE_PART in metadata else hit for hit, metadata in pairs]
    keys = isinstance(answer, dict) and ", ".join(map(str, answer))
    hint = f" with the keys {keys}; .pick() the documents' key" if keys else ""
    raise DataError(f"expected a list of LangChain documents, got a {type(answer).__name__}{hint}")


_hooks: RetrieverHooks[Runnable[str, list[Document]], Document] = RetrieverHooks(_system, _hits)
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
        documents_key: of the application's outputs: the retrieved documents.
        counter: counts the tokens.

    Raises:
        OptionError: an unknown collection, measure or counter.
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
        values = scorer.scores(question, _hits(documents), parsed)
        return {"results": [{"key": str(key), "score": value} for key, value in zip(parsed, values, strict=True)]}

    return score_spans


def _held(mapping: Any, key: str, what: str) -> Any:
    if not isinstance(mapping, Mapping) or key not in mapping:
        keys = ", ".join(map(str, mapping)) if isinstance(mapping, Mapping) else type(mapping).__name__
        raise DataError(f"the {what} have no {key!r}, but {keys or 'nothing'}: name the key that has it")
    return mapping[key]


# ---- Late vectors and segments


def embed_late(
    chunks: Sequence[Document], documents: Iterable[Document], model: LateEmbedder | Embedder | str = DEFAULT_MODEL
) -> list[tuple[Document, list[float]]]:
    """Each chunk with its vector in the context of its whole document (late chunking; see `LateEmbedder`).

    Write them to a store that takes vectors, such as FAISS or PGVector (``from_embeddings``), and give the store
    ``ChunkcoreEmbeddings(model)`` for the questions.

    Args:
        chunks: from `ChunkcoreTextSplitter.split_documents`.
        documents: the chunks' documents.
        model: a model with token vectors.

    Raises:
        DataError: a chunk is not at its stated place in one of the documents; or two documents have the same name.
        OptionError: the model gives no token vectors.
        ModelError: the model failed, or gave a wrong answer, twice.
    """
    texts: dict[str, str] = {}
    for document in documents:
        source, _ = source_of(document.id, document.page_content, document.metadata)
        key = part_of(source, document.metadata)
        if texts.setdefault(key, document.page_content) != document.page_content:
            raise DataError(f"two documents are called {key!r}: give each an id or a metadata source of its own")
    vectors = late_vectors(list(map(hit_of, chunks)), texts, model)
    return list(zip(chunks, vectors, strict=True))


def segment_documents(chunks: Iterable[Document], *, id_key: str = "doc_id") -> list[Document]:
    """Small documents to search with: the segments of chunks that have some (``hierarchical``), else the chunks.

    For LangChain's ``MultiVectorRetriever``: these go to its vector store, the chunks to its docstore by their ids
    (``docstore.mset([(each.id, each) for each in chunks])``). A small document has the chunk's metadata, its own place,
    and the chunk's id under `id_key`. To cut chunks again by size, use ``ParentDocumentRetriever`` with
    `ChunkcoreTextSplitter` as ``parent_splitter`` and ``child_splitter``.

    Args:
        chunks: from `ChunkcoreTextSplitter`.
        id_key: the retriever's.

    Raises:
        DataError: a chunk has no id.
    """
    segments: list[Document] = []
    taken: set[str] = set()
    for chunk in chunks:
        if not chunk.id:
            raise DataError("a chunk has no id for its segments to refer to: cut it with ChunkcoreTextSplitter")
        inherited = {key: value for key, value in chunk.metadata.items() if key not in (SEGMENTS, SPANS)}
        for spans, text in segments_of(hit_of(chunk), chunk.metadata):
            metadata = copy.deepcopy(inherited) | (KEYS.write(spans) or UNKNOWN) | {id_key: chunk.id}
            name = unused_id(digest(f"{chunk.id}{spans}"), taken)
            segments.append(Document(page_content=text, metadata=metadata, id=name))
    return segments
