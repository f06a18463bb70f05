"""Scores for any LangChain retriever, or runnable from a question to documents, as it is deployed."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, BaseDocumentTransformer, Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStore
from pydantic import Field, PrivateAttr

from chunkadapters.langchain.splitter import place_of, source_of
from chunkadapters.models import secrets_within
from chunkadapters.places import (
    DERIVED,
    GAP,
    SEGMENTS,
    SEPARATOR,
    SPANS,
    Hit,
    Merging,
    United,
    decode_segments,
    late_vectors,
    merged_id,
    merged_metadata,
    segment_texts,
    unused_id,
)
from chunkadapters.retrieval import (
    Piece,
    QuestionScorer,
    RetrieverHooks,
    System,
    measures_of,
    names,
    settings_mark,
    stated_spans,
)
from chunkcore.errors import DataError
from chunkcore.evaluation.benchmarks.benchmark import Benchmark
from chunkcore.evaluation.measures import Measure
from chunkcore.models import DEFAULT_MODEL, Embedder, LateEmbedder

__all__ = [
    "MergeOverlaps",
    "add_embedded",
    "aevaluate_retriever",
    "arun_retriever",
    "embed_late",
    "evaluate_retriever",
    "hit_of",
    "langsmith_evaluator",
    "merge_overlaps",
    "part_of",
    "piece_of",
    "run_retriever",
    "segment_documents",
]

# Loaders make a document of each of these, and offsets are into that.
_PARTS = ("page", "page_number", "row", "sheet", "seq_num")


def piece_of(document: Any) -> Piece:
    """What a document says of itself. Raises `DataError` where it is none."""
    if not isinstance(document, Document):
        raise DataError(f"expected LangChain documents, got a {type(document).__name__} among the answers")
    known = document.metadata
    score = known.get("score", known.get("relevance_score"))
    return Piece(
        text=document.page_content,
        score=float(score) if isinstance(score, int | float) else 0.0,
        document_ids=names(known.get("source_id"), document.id, known.get("source")),
        derived=known.get(DERIVED) is True,
        spans=stated_spans(known.get(SPANS), known.get("start_index"), known.get("end_index"), document.page_content),
    )


def hit_of(document: Document) -> Hit:
    """A document with the source, or the part of one, that its place is in. Raises `DataError` where it is none."""
    piece, known = piece_of(document), document.metadata
    source = known.get("source_id") or known.get("source")
    return Hit(part_of(str(source), known) if source else "", piece.spans, piece.text, piece.derived)


def part_of(source: str, metadata: Mapping[Any, Any]) -> str:
    """What tells a source's part, such as a page, from the others: places are in that."""
    return "#".join([source, *(f"{key}={metadata[key]}" for key in _PARTS if key in metadata)])


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


Evaluator = Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]


def langsmith_evaluator(
    benchmark: Benchmark | str,
    measures: Sequence[Measure | str] | str = ("Recall@5", "Precision@5", "IoU@5"),
    *,
    question_key: str = "question",
    documents_key: str = "documents",
    counter: str = "cl100k_base",
) -> Evaluator:
    """A function that scores what an application retrieved, for ``client.evaluate(app, evaluators=[...])``.

    Args:
        benchmark: documents, questions and the spans that answer them; the examples' questions are its own. Or the
            name of a collection that ships with chunkcore.
        measures: what is told, a result each.
        question_key: where an example's inputs have the question, its text or its id.
        documents_key: where the application's outputs have the retrieved documents.
        counter: whose tokens are counted.

    Returns:
        From inputs and outputs to ``{"results": [{"key": "Recall@5", "score": 0.8}, ...]}``. It raises `DataError`
        where the question is none of the benchmark's, or the outputs have no documents; LangSmith shows that.

    Raises:
        OptionError: an unknown collection, measure or counter.
    """
    wanted = measures_of(measures)
    scorer = QuestionScorer(benchmark, counter)

    def score_spans(inputs: dict[str, Any], outputs: dict[str, Any]) -> dict[str, Any]:
        question = _held(inputs, question_key, "inputs")
        documents = _held(outputs, documents_key, "outputs")
        if not isinstance(question, str) or not isinstance(documents, list | tuple):
            raise DataError(
                f"expected a question's text and a list of documents, got {type(question).__name__} and "
                f"{type(documents).__name__}"
            )
        values = scorer.scores(question, [piece_of(each) for each in documents], wanted)
        return {"results": [{"key": str(key), "score": value} for key, value in zip(wanted, values, strict=True)]}

    return score_spans


def _held(mapping: Any, key: str, what: str) -> Any:
    if not isinstance(mapping, Mapping) or key not in mapping:
        keys = ", ".join(map(str, mapping)) if isinstance(mapping, Mapping) else type(mapping).__name__
        raise DataError(f"the {what} have no {key!r}, but {keys or 'nothing'}: name the key that has it")
    return mapping[key]


class MergeOverlaps(BaseDocumentTransformer, BaseDocumentCompressor):
    """Unites hits of one source that overlap or are adjacent, so that no token goes to the model twice.

    A document compressor, for ``ContextualCompressionRetriever(base_compressor=MergeOverlaps(), ...)``, and a document
    transformer, for ``DocumentCompressorPipeline`` and ``retriever | MergeOverlaps().transform_documents``.

    The result is in the order of the best hit of each. A united document has the text of its source at ``start_index``,
    ``end_index`` and, where that is several places, ``spans``; the other metadata of the hit that begins first, but
    the score of the best one; and ``merged_ids``, the ids of the hits, the best first. A hit stays as it is where it
    does not say where it stands (``source_id`` or ``source``, and ``start_index``), or where its text is not what
    stands there.

    Args:
        max_gap: hits with so many characters between them are adjacent; set is what a paragraph break may have. What
            stands there is not known: the texts are joined by the separator, and the document is of several spans.
        separator: what joins texts between which something stands.

    Raises:
        pydantic.ValidationError: (a ValueError) an option is out of range.

    >>> hits = [
    ...     Document(page_content=text, metadata={"source": "tea.md", "start_index": start})
    ...     for start, text in [(8, "is hot."), (0, "The tea is")]
    ... ]
    >>> [(each.page_content, each.metadata["end_index"]) for each in MergeOverlaps().transform_documents(hits)]
    [('The tea is hot.', 15)]
    """

    max_gap: int = Field(default=GAP, ge=0, strict=True)
    separator: str = SEPARATOR
    _merging: Merging = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        self._merging = Merging(max_gap=self.max_gap, separator=self.separator)

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """The hits, united. The query plays no part."""
        return self.transform_documents(documents)

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """`compress_documents`, which waits for nothing."""
        return self.transform_documents(documents)

    def transform_documents(self, documents: Sequence[Document], **kwargs: Any) -> list[Document]:
        """The hits, united.

        Raises:
            DataError: something else than documents is among them.
        """
        united = self._merging.unite([hit_of(each) for each in documents])
        return [_document(each, documents) for each in united]

    async def atransform_documents(self, documents: Sequence[Document], **kwargs: Any) -> list[Document]:
        """`transform_documents`, which waits for nothing."""
        return self.transform_documents(documents)


def merge_overlaps(documents: Sequence[Document], *, max_gap: int = GAP, separator: str = SEPARATOR) -> list[Document]:
    """The hits, united: `MergeOverlaps` at once."""
    return MergeOverlaps(max_gap=max_gap, separator=separator).transform_documents(documents)


def _document(united: United, hits: Sequence[Document]) -> Document:
    if len(united.members) == 1:
        return hits[united.first]
    members = [hits[place] for place in united.members]
    metadata = merged_metadata(hits[united.first].metadata, [each.id for each in members if each.id])
    metadata |= {key: value for key, value in members[0].metadata.items() if key in ("score", "relevance_score")}
    metadata |= place_of(united.spans)
    ids = [each.id or f"{each.metadata.get('start_index')}:{each.page_content}" for each in members]
    return Document(page_content=united.text, metadata=metadata, id=merged_id(ids))


def embed_late(
    chunks: Sequence[Document], documents: Iterable[Document], model: LateEmbedder | Embedder | str = DEFAULT_MODEL
) -> list[tuple[Document, list[float]]]:
    """Each chunk with its vector in the context of its whole document (late chunking; see `LateEmbedder`).

    Questions are embedded as ever: give the store ``ChunkcoreEmbeddings(model)`` for them.

    Args:
        chunks: as `ChunkcoreTextSplitter.split_documents` makes them.
        documents: those that they were cut from.
        model: with token vectors.

    Raises:
        DataError: a chunk does not stand where it says in one of the documents; or two documents cannot be told apart.
        OptionError: the model gives no token vectors.
        ModelError: the model failed, or answered with something that is no answer, twice.
    """
    texts: dict[str, str] = {}
    for each in documents:
        source, _ = source_of(each.id, each.page_content, each.metadata)
        key = part_of(source, each.metadata)
        if texts.setdefault(key, each.page_content) != each.page_content:
            raise DataError(f"two documents are called {key!r}: give each an id or a metadata source of its own")
    vectors = late_vectors([hit_of(each) for each in chunks], texts, model)
    return list(zip(chunks, vectors, strict=True))


def add_embedded(store: VectorStore, embedded: Sequence[tuple[Document, list[float]]], **more: Any) -> list[str]:
    """Add chunks with the vectors that they have to a store that takes vectors: FAISS, PGVector, OpenSearch and others.

    Args:
        store: which has an ``add_embeddings``.
        embedded: what `embed_late` gives.
        more: handed on to ``add_embeddings``.

    Returns:
        The ids.

    Raises:
        DataError: the store has no ``add_embeddings``.
    """
    add = getattr(store, "add_embeddings", None)
    if add is None:
        raise DataError(
            f"{type(store).__name__} has no add_embeddings, so that it cannot be given vectors; "
            "FAISS, PGVector, OpenSearch and Elasticsearch have"
        )
    taken: set[str] = set()
    ids = [unused_id(each.id or merged_id([each.page_content]), taken) for each, _ in embedded]
    texts, vectors = [each.page_content for each, _ in embedded], [vector for _, vector in embedded]
    given: dict[str, Any] = {"metadatas": [each.metadata for each, _ in embedded], "ids": ids, **more}
    # Some stores take pairs, others texts and vectors apart.
    if "text_embeddings" in inspect.signature(add).parameters:
        return list(add(text_embeddings=list(zip(texts, vectors, strict=True)), **given))
    return list(add(texts=texts, embeddings=vectors, **given))


def segment_documents(chunks: Iterable[Document], *, id_key: str = "doc_id") -> list[Document]:
    """The segments of chunks that have some (``hierarchical``), and the other chunks as they are, as small documents.

    For LangChain's ``MultiVectorRetriever``: these go to its vector store, the chunks to its docstore by their ids
    (``docstore.mset([(each.id, each) for each in chunks])``). A small document has the chunk's metadata, its own place,
    and the chunk's id under `id_key`. For chunks that are cut again by size, LangChain's ``ParentDocumentRetriever``
    takes `ChunkcoreTextSplitter` as ``parent_splitter`` and as ``child_splitter``.

    Args:
        chunks: as `ChunkcoreTextSplitter` makes them.
        id_key: the retriever's own.

    Raises:
        DataError: a chunk has no id.
    """
    found: list[Document] = []
    taken: set[str] = set()
    for chunk in chunks:
        if not chunk.id:
            raise DataError("a chunk has no id for its segments to refer to: cut it with ChunkcoreTextSplitter")
        segments = decode_segments(chunk.metadata.get(SEGMENTS))
        known = {key: value for key, value in chunk.metadata.items() if key not in (SEGMENTS, SPANS)}
        for spans, text in segment_texts(hit_of(chunk), segments):
            metadata = copy.deepcopy(known) | place_of(spans) | {id_key: chunk.id}
            name = unused_id(merged_id([chunk.id, str(spans)]), taken)
            found.append(Document(page_content=text, metadata=metadata, id=name))
    return found
