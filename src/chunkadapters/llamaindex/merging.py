"""Overlapping and adjacent hits of a LlamaIndex retriever as one node."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, TextNode

from chunkadapters._merging import GAP, MERGED_IDS, SEPARATOR, Merging, United, merged_id, merged_metadata
from chunkadapters._origin import encode_spans
from chunkadapters._told import SPANS
from chunkadapters.llamaindex.pieces import hit_of

__all__ = ["MergeOverlaps", "merge_overlaps"]


class MergeOverlaps(BaseNodePostprocessor):
    """Unites hits of one document that overlap or are adjacent, so that no token goes to the model twice.

    For ``node_postprocessors=[..., MergeOverlaps()]`` of a query engine, best as the last of them.

    The result is in the order of the best hit of each, with its score. A united node has the document's text at
    ``start_char_idx`` and ``end_char_idx`` (and its metadata's ``spans``, where that is several places); the other
    metadata and the relationships of the hits at its ends; and ``merged_ids``, the hits' ids, the best first. A hit
    stays as it is where it does not say where it stands, or where its text is not what stands there.

    Args:
        max_gap: hits with so many characters between them are adjacent; set is what a paragraph break may have. What
            stands there is not known: the texts are joined by the separator, and the node is of several spans.
        separator: what joins texts between which something stands.

    Raises:
        pydantic.ValidationError: (a ValueError) an option is out of range.

    >>> from llama_index.core.schema import RelatedNodeInfo
    >>> source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="tea")}
    >>> hits = [
    ...     NodeWithScore(node=TextNode(text=text, start_char_idx=start, end_char_idx=end, relationships=source))
    ...     for start, end, text in [(8, 15, "is hot."), (0, 10, "The tea is")]
    ... ]
    >>> [(each.text, each.node.end_char_idx) for each in MergeOverlaps().postprocess_nodes(hits)]
    [('The tea is hot.', 15)]
    """

    max_gap: int = Field(default=GAP, ge=0, strict=True, description="So many characters between hits are none.")
    separator: str = Field(default=SEPARATOR, description="What joins texts between which something stands.")
    _merging: Merging = PrivateAttr()

    def model_post_init(self, context: object) -> None:
        super().model_post_init(context)
        self._merging = Merging(max_gap=self.max_gap, separator=self.separator)

    @classmethod
    def class_name(cls) -> str:
        return "ChunkcoreMergeOverlaps"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        united = self._merging.unite([hit_of(each.node) for each in nodes])
        return [_node(each, nodes) for each in united]


def merge_overlaps(
    nodes: Sequence[NodeWithScore], *, max_gap: int = GAP, separator: str = SEPARATOR
) -> list[NodeWithScore]:
    """The hits, united: `MergeOverlaps` at once."""
    return MergeOverlaps(max_gap=max_gap, separator=separator).postprocess_nodes(list(nodes))


def _node(united: United, hits: Sequence[NodeWithScore]) -> NodeWithScore:
    if len(united.members) == 1:
        return hits[united.first]
    members = [hits[place] for place in united.members]
    first = hits[united.first].node
    last = max((each.node for each in members), key=lambda node: getattr(node, "end_char_idx", None) or 0)
    ids = [each.node.node_id for each in members]
    metadata = merged_metadata(first.metadata, ids)
    if len(united.spans) > 1:
        metadata[SPANS] = encode_spans(united.spans)
    related = {NodeRelationship.SOURCE: first, NodeRelationship.PREVIOUS: first, NodeRelationship.NEXT: last}
    return NodeWithScore(
        score=members[0].score,
        node=TextNode(
            id_=merged_id(ids),
            text=united.text,
            metadata=metadata,
            start_char_idx=united.spans[0].start,
            end_char_idx=united.spans[-1].end,
            relationships={key: node.relationships[key] for key, node in related.items() if key in node.relationships},
            excluded_embed_metadata_keys=_unread(first.excluded_embed_metadata_keys),
            excluded_llm_metadata_keys=_unread(first.excluded_llm_metadata_keys),
            metadata_separator=getattr(first, "metadata_seperator", "\n"),
        ),
    )


def _unread(keys: Sequence[str]) -> list[str]:
    """The keys that a model does not read: those of the first hit, and what only says where the node comes from."""
    return list(dict.fromkeys([*keys, SPANS, MERGED_IDS]))
