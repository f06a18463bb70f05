"""`PlacedNodeParser`: any LlamaIndex node parser, run as it is, with right places on its nodes."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from llama_index.core.bridge.pydantic import Field, SerializeAsAny
from llama_index.core.node_parser import NodeParser
from llama_index.core.schema import BaseNode, MetadataMode, NodeRelationship, TextNode

from chunkadapters.aligned import Piece, Unplaced, placed_records
from chunkadapters.llamaindex.node_parser import KEYS, exclude_keys, origin_of
from chunkadapters.places import DERIVED, Origin
from chunkcore.document import Document as CoreDocument
from chunkcore.errors import OptionError


class PlacedNodeParser(NodeParser):
    r"""Runs a parser, and writes each node's place in its document: `exact` of parsers that it does not rewrite.

    The nodes are the parser's, with their ids, metadata and relationships; ``start_char_idx`` and ``end_char_idx`` are
    right, or None where the place is not known: for a text that is not in the document, or has several equally good
    places. Children (of a `HierarchicalNodeParser`) are placed inside their parents. Metadata that no model reads are
    added: ``white_space`` up to the next node, ``located`` if the text is altered or repeated, ``derived`` if it is
    altered.

    Args:
        parser: any node parser.
        unplaced: "mark" nodes that are not in the text, or "refuse" them with a `DataError`.

    >>> from llama_index.core import Document
    >>> from llama_index.core.node_parser import MarkdownNodeParser
    >>> document = Document(text="# A\n\nTea.\n\n# B")
    >>> nodes = PlacedNodeParser(MarkdownNodeParser()).get_nodes_from_documents([document])
    >>> [(node.text, node.start_char_idx) for node in nodes]
    [('# A\n\nTea.', 0), ('# B', 11)]
    """

    parser: SerializeAsAny[NodeParser] = Field(description="The parser that cuts.")
    unplaced: Unplaced = Field(default="mark", description="What becomes of nodes that are not in the text.")

    def __init__(self, parser: NodeParser, *, unplaced: Unplaced = "mark", **fields: Any) -> None:
        if unknown := fields.keys() - NodeParser.model_fields:
            raise OptionError(f"PlacedNodeParser has no option {', '.join(sorted(unknown))}")
        values: dict[str, Any] = {"parser": parser, "unplaced": unplaced, **fields}
        super().__init__(**values)

    @classmethod
    def class_name(cls) -> str:
        return "PlacedNodeParser"

    def _parse_nodes(self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any) -> list[BaseNode]:
        placed: list[BaseNode] = []
        for node in nodes:
            parts = self.parser([node], show_progress=show_progress, **kwargs)
            self._place(node, parts)
            placed += parts
        return placed

    async def _aparse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        return await asyncio.to_thread(self._parse_nodes, nodes, show_progress=show_progress, **kwargs)

    def _postprocess_parsed_nodes(self, nodes: list[BaseNode], parent_doc_map: dict[str, Any]) -> list[BaseNode]:
        return nodes  # the parser has done that

    def _place(self, document: BaseNode, nodes: Sequence[BaseNode]) -> None:
        """Write the places of all nodes; parents come before their children."""
        siblings: dict[str, list[TextNode]] = defaultdict(list)
        for node in nodes:
            if isinstance(node, TextNode) and node.get_content(MetadataMode.NONE):
                relation = node.relationships.get(NodeRelationship.PARENT)
                siblings[getattr(relation, "node_id", document.node_id)].append(node)
        parents = {node.node_id: node for node in (document, *nodes)}
        for parent_id, children in siblings.items():
            parent = parents.get(parent_id, document)
            text = parent.get_content(MetadataMode.NONE)
            origin = origin_of(document, text) if parent is document else _origin_of_parent(parent)
            pieces = [Piece(child.get_content(MetadataMode.NONE)) for child in children]
            source = CoreDocument(parent.node_id, text, parent.metadata)
            records = placed_records(source, pieces, origin, KEYS, self.unplaced)
            for child, (_, record) in zip(children, records, strict=True):
                child.start_char_idx, child.end_char_idx = record.pop(KEYS.start, None), record.pop(KEYS.end, None)
                child.metadata.update(record)
                exclude_keys(child, record)


def _origin_of_parent(parent: BaseNode) -> Origin:
    start = getattr(parent, KEYS.start, None)
    return Origin.unknown() if start is None or parent.metadata.get(DERIVED) else Origin.at(start)
