"""Late chunking, and chunks that are found by their segments, with LangChain's stores and retrievers."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from chunkadapters._ids import unused_id
from chunkadapters._merging import merged_id
from chunkadapters._origin import decode_segments
from chunkadapters._places import late_vectors, segment_texts
from chunkadapters._told import SEGMENTS, SPANS
from chunkadapters.langchain.pieces import hit_of, part_of
from chunkadapters.langchain.splitter import place_of, source_of
from chunkcore.errors import DataError
from chunkcore.models import DEFAULT_MODEL, Embedder, LateEmbedder

__all__ = ["add_embedded", "embed_late", "segment_documents"]


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
