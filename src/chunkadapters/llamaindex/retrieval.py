"""Scores for LlamaIndex retrievers; late embeddings, and segments as small nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import (
    BaseNode,
    IndexNode,
    MetadataMode,
    NodeWithScore,
    QueryBundle,
    TextNode,
)

from chunkadapters.hits import Hit, late_vectors, names, segments_of
from chunkadapters.llamaindex.node_parser import KEYS, node_place, stated_place
from chunkadapters.places import DERIVED, SEGMENTS, SPANS, digest, unused_id
from chunkadapters.retrieval import DeployedRetriever, RetrieverHooks
from chunkcore.errors import DataError
from chunkcore.models import DEFAULT_MODEL, Embedder, LateEmbedder

# Where readers and users write a document's name.
_NAMING_KEYS = ("source_id", "file_path", "file_name", "source")


def hit_of(node_or_hit: Any) -> Hit:
    """A node, with a score or without, as a hit. Raises `DataError` for anything else."""
    node = node_or_hit.node if isinstance(node_or_hit, NodeWithScore) else node_or_hit
    if not isinstance(node, BaseNode):
        raise DataError(f"expected nodes with scores, got a {type(node).__name__} among the answers")
    text, metadata = node.get_content(metadata_mode=MetadataMode.NONE), node.metadata
    document = node.ref_doc_id or metadata.get("source_id")
    return Hit(
        text=text,
        score=float(node_or_hit.score or 0.0) if isinstance(node_or_hit, NodeWithScore) else 0.0,
        document_ids=names(node.ref_doc_id, *(metadata.get(key) for key in _NAMING_KEYS)),
        spans=KEYS.spans_of(stated_place(node), text),
        derived=metadata.get(DERIVED) is True,
        document=document if isinstance(document, str) else "",
    )


# ---- Scores


def _system(retriever: BaseRetriever | BaseQueryEngine) -> DeployedRetriever:
    ask: Callable[[str], Any]
    aask: Callable[[str], Awaitable[Any]]
    if isinstance(retriever, BaseRetriever):
        ask, aask = retriever.retrieve, retriever.aretrieve
    elif isinstance(retriever, BaseQueryEngine):
        ask, aask = _of_engine(retriever)
    elif hasattr(retriever, "as_retriever"):
        raise DataError(f"{type(retriever).__name__} is an index, not a retriever: pass its .as_retriever()")
    else:
        raise DataError(f"expected a LlamaIndex retriever, got {type(retriever).__name__}; subclass BaseRetriever")
    return DeployedRetriever(type(retriever).__name__, ask, aask, retriever)


def _of_engine(engine: BaseQueryEngine) -> tuple[Callable[[str], Any], Callable[[str], Awaitable[Any]]]:
    """Functions that ask a query engine for its hits after post-processing; no answer is written."""
    if type(engine).retrieve is BaseQueryEngine.retrieve:
        raise DataError(f"{type(engine).__name__} does not tell what it retrieves: pass its retriever")
    asynchronous = getattr(engine, "aretrieve", None)

    def ask(question: str) -> Any:
        return engine.retrieve(QueryBundle(question))

    async def aask(question: str) -> Any:
        if asynchronous is None:
            return await asyncio.to_thread(ask, question)
        return await asynchronous(QueryBundle(question))

    return ask, aask


def _hits(answer: Any) -> list[Hit]:
    if not isinstance(answer, list | tuple):
        raise DataError(f"expected a list of nodes with scores, got a {type(answer).__name__}")
    return list(map(hit_of, answer))


_hooks: RetrieverHooks[BaseRetriever | BaseQueryEngine, BaseNode] = RetrieverHooks(_system, _hits)
run_retriever = _hooks.run_retriever
arun_retriever = _hooks.arun_retriever
evaluate_retriever = _hooks.evaluate_retriever
aevaluate_retriever = _hooks.aevaluate_retriever


# ---- Late vectors and segments


def embed_late(
    nodes: Sequence[BaseNode], documents: Sequence[BaseNode], model: LateEmbedder | Embedder | str = DEFAULT_MODEL
) -> list[BaseNode]:
    """Copies of the nodes, each with its vector in the context of its whole document (late chunking).

    An index does not embed nodes that have a vector: ``VectorStoreIndex(embed_late(nodes, documents, model),
    embed_model=ChunkcoreEmbedding(model))``. Metadata are not embedded. See `LateEmbedder`.

    Args:
        nodes: from `ChunkcoreNodeParser`.
        documents: the nodes' documents.
        model: a model with token vectors.

    Raises:
        DataError: a node is not at its stated place in one of the documents.
        OptionError: the model gives no token vectors.
        ModelError: the model failed, or gave a wrong answer, twice.
    """
    texts = {document.node_id: document.get_content(metadata_mode=MetadataMode.NONE) for document in documents}
    vectors = late_vectors(_hits(nodes), texts, model)
    return [node.model_copy(update={"embedding": vector}) for node, vector in zip(nodes, vectors, strict=True)]


def segment_nodes(nodes: Sequence[TextNode]) -> list[IndexNode]:
    """Small index nodes to search with: the segments of nodes that have some (``hierarchical``), else the nodes.

    A retriever over them returns the whole nodes, by ``IndexNode.obj``. To cut nodes again by size, use LlamaIndex'
    ``HierarchicalNodeParser`` with `ChunkcoreNodeParser` in its ``node_parser_map``, and ``AutoMergingRetriever``.
    """
    segments = []
    taken: set[str] = set()
    for node in nodes:
        metadata = {key: value for key, value in node.metadata.items() if key not in (SEGMENTS, SPANS)}
        for spans, text in segments_of(hit_of(node), node.metadata):
            attributes, several = node_place(spans)
            small = IndexNode(
                id_=unused_id(digest(f"{node.node_id}{spans}"), taken),
                text=text,
                index_id=node.node_id,
                obj=node,
                extra_info=metadata | several,
                **attributes,
                relationships=node.relationships,
                excluded_embed_metadata_keys=[*node.excluded_embed_metadata_keys, *several],
                excluded_llm_metadata_keys=[*node.excluded_llm_metadata_keys, *several],
            )
            segments.append(small)
    return segments
