"""`update_index`: embed and write only the nodes that changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.indices.utils import embed_nodes
from llama_index.core.node_parser import NodeParser
from llama_index.core.schema import BaseNode, MetadataMode, NodeRelationship
from llama_index.core.vector_stores.simple import SimpleVectorStore

from chunkcore.errors import DataError

_NEIGHBOURS = (NodeRelationship.PREVIOUS, NodeRelationship.NEXT)


@dataclass(frozen=True)
class IndexUpdate:
    """Numbers of nodes that `update_index` kept or changed.

    Attributes:
        kept: unchanged nodes.
        moved: nodes with known text but another place, neighbours or metadata: written again with the old vector.
        new: nodes with new text: embedded and written.
        deleted: nodes that no longer exist.
    """

    kept: int = 0
    moved: int = 0
    new: int = 0
    deleted: int = 0


def update_index(index: VectorStoreIndex, documents: Sequence[Document], parser: NodeParser) -> IndexUpdate:
    """Make an index hold exactly the current nodes of these documents; other documents stay.

    Nodes are compared by id (`ChunkcoreNodeParser` makes it of document, options and place), embedded text and
    neighbours. A document without text loses all its nodes. Embedding comes before writing: if the model fails, the
    index is unchanged.

    Vectors of moved nodes come from LlamaIndex' own vector store. With any other store they are embedded again, so use
    a cache (`ChunkcoreEmbedding` over a `CachedEmbedder`, or the model's ``embeddings_cache``).

    Args:
        index: keeps its nodes in a docstore; with another vector store than LlamaIndex' own, use
            ``VectorStoreIndex(..., store_nodes_override=True)``.
        documents: with ids of their own (``Document(id_=...)``).
        parser: a parser with reproducible node ids.

    Raises:
        DataError: the index keeps no nodes in a docstore.

    >>> from llama_index.core import MockEmbedding
    >>> from chunkadapters.llamaindex import ChunkcoreNodeParser
    >>> parser = ChunkcoreNodeParser(strategy="recursive", size=4, counter="words")
    >>> index = VectorStoreIndex([], embed_model=MockEmbedding(embed_dim=2))
    >>> update_index(index, [Document(id_="a", text="The tea is hot. The sea is deep.")], parser).new
    2
    >>> update_index(index, [Document(id_="a", text="The tea is hot. The sea is cold.")], parser)
    IndexUpdate(kept=1, moved=0, new=1, deleted=0)
    """
    if index.vector_store.stores_text and not getattr(index, "_store_nodes_override", False):
        raise DataError(
            f"the index keeps no nodes beside its {type(index.vector_store).__name__}, so that it cannot be told what "
            "is in it: build it with store_nodes_override=True"
        )
    old = _indexed(index, [document.node_id for document in documents])
    now = {
        node.node_id: node
        for node in parser.get_nodes_from_documents([document for document in documents if document.text])
    }
    kept = {key for key, node in now.items() if key in old and _same(old[key], node)}
    written = [node for key, node in now.items() if key not in kept]
    before = {_read(node) for node in old.values()}
    moved = sum(_read(node) in before for node in written)
    _embed(index, written, _vectors(index, old.values()))
    replaced = [key for key in now if key in old and key not in kept]
    if replaced:
        index.delete_nodes(replaced, delete_from_docstore=True)
    index.insert_nodes(written)
    gone = [key for key in old if key not in now]
    if gone:
        index.delete_nodes(gone, delete_from_docstore=True)
    return IndexUpdate(kept=len(kept), moved=moved, new=len(written) - moved, deleted=len(gone))


def _indexed(index: VectorStoreIndex, document_ids: Iterable[str]) -> dict[str, BaseNode]:
    nodes: dict[str, BaseNode] = {}
    for document_id in document_ids:
        info = index.docstore.get_ref_doc_info(document_id)
        stored = index.docstore.get_nodes(info.node_ids, raise_error=False) if info else []
        nodes.update((node.node_id, node) for node in stored if node is not None)
    return nodes


def _read(node: BaseNode) -> str:
    return node.get_content(metadata_mode=MetadataMode.EMBED)


def _same(old: BaseNode, new: BaseNode) -> bool:
    return (
        _read(old) == _read(new)
        and old.metadata == new.metadata
        and all(_neighbour(old, which) == _neighbour(new, which) for which in _NEIGHBOURS)
    )


def _neighbour(node: BaseNode, which: NodeRelationship) -> str:
    related = node.relationships.get(which)
    return getattr(related, "node_id", "")


def _embed(index: VectorStoreIndex, nodes: Sequence[BaseNode], by_text: Mapping[str, list[float]]) -> None:
    for node in nodes:
        node.embedding = by_text.get(_read(node))
    vectors = embed_nodes(nodes, index._embed_model)
    for node in nodes:
        node.embedding = vectors[node.node_id]


def _vectors(index: VectorStoreIndex, nodes: Iterable[BaseNode]) -> Mapping[str, list[float]]:
    store = index.vector_store
    if not isinstance(store, SimpleVectorStore):
        return {}
    by_id = store.data.embedding_dict
    return {_read(node): by_id[node.node_id] for node in nodes if node.node_id in by_id}
