"""Late chunking, and nodes that are found by their segments, in LlamaIndex."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.schema import BaseNode, IndexNode, MetadataMode, TextNode

from chunkadapters._ids import unused_id
from chunkadapters._merging import merged_id
from chunkadapters._origin import decode_segments, encode_spans
from chunkadapters._places import late_vectors, segment_texts
from chunkadapters._told import SEGMENTS, SPANS
from chunkadapters.llamaindex.pieces import hit_of
from chunkcore.models import DEFAULT_MODEL, Embedder, LateEmbedder

__all__ = ["embed_late", "segment_nodes"]


def embed_late(
    nodes: Sequence[BaseNode], documents: Sequence[BaseNode], model: LateEmbedder | Embedder | str = DEFAULT_MODEL
) -> list[BaseNode]:
    """The nodes, each with its vector in the context of its whole document (late chunking; see `LateEmbedder`).

    An index embeds no node that has a vector: ``VectorStoreIndex(embed_late(nodes, documents, model),
    embed_model=ChunkcoreEmbedding(model))``. Metadata are not read.

    Args:
        nodes: as `ChunkcoreNodeParser` makes them; copied.
        documents: those that they were cut from.
        model: with token vectors.

    Raises:
        DataError: a node does not stand where it says in one of the documents.
        OptionError: the model gives no token vectors.
        ModelError: the model failed, or answered with something that is no answer, twice.
    """
    texts = {each.node_id: each.get_content(metadata_mode=MetadataMode.NONE) for each in documents}
    vectors = late_vectors([hit_of(each) for each in nodes], texts, model)
    return [node.model_copy(update={"embedding": vector}) for node, vector in zip(nodes, vectors, strict=True)]


def segment_nodes(nodes: Sequence[TextNode]) -> list[IndexNode]:
    """The segments of nodes that have some (``hierarchical``), and the other nodes as they are, as small index nodes.

    An index over them answers with the node that each stands for: its retriever follows ``IndexNode.obj``. For nodes
    that are cut again by size, LlamaIndex' ``HierarchicalNodeParser`` takes `ChunkcoreNodeParser` in its
    ``node_parser_map``, and ``AutoMergingRetriever`` what that makes.

    Args:
        nodes: as `ChunkcoreNodeParser` makes them.
    """
    found = []
    taken: set[str] = set()
    for node in nodes:
        segments = decode_segments(node.metadata.get(SEGMENTS))
        known = {key: value for key, value in node.metadata.items() if key not in (SEGMENTS, SPANS)}
        for spans, text in segment_texts(hit_of(node), segments):
            several = {SPANS: encode_spans(spans)} if len(spans) > 1 else {}
            small = IndexNode(
                id_=unused_id(merged_id([node.node_id, str(spans)]), taken),
                text=text,
                index_id=node.node_id,
                obj=node,
                extra_info=known | several,
                start_char_idx=min(span.start for span in spans) if spans else None,
                end_char_idx=max(span.end for span in spans) if spans else None,
                relationships=node.relationships,
                excluded_embed_metadata_keys=[*node.excluded_embed_metadata_keys, *several],
                excluded_llm_metadata_keys=[*node.excluded_llm_metadata_keys, *several],
            )
            found.append(small)
    return found
